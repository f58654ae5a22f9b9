"""Mistakes in objects of core and kubeadm that their webhooks refuse."""

from __future__ import annotations

from tests.core_objects import CLASS, JSON, VERSIONS, Mistake, Path


def _variable(schema: JSON, name: str = "added") -> JSON:
    return {"name": name, "required": False, "schema": {"openAPIV3Schema": schema}}


_TEXT = {"type": "string"}
_ADDED: Path = ("spec", "variables", 0)
_WORKER: Path = ("spec", "workers", "machineDeployments", 0)
_TOPOLOGY: Path = ("spec", "topology")
_MACHINE: Path = ("spec", "template", "spec")
_CONFIG: Path = ("spec", "kubeadmConfigSpec")
_SCALED = {"cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size": "3"}

OF_CLASSES = (
    Mistake("ClusterClass", _ADDED, _variable(_TEXT, "builtin")),
    Mistake("ClusterClass", _ADDED, _variable(_TEXT, "disk.size")),
    Mistake("ClusterClass", ("spec", "variables"), [_variable(_TEXT), _variable(_TEXT)]),
    Mistake("ClusterClass", _ADDED, _variable({"description": "a size"})),
    Mistake("ClusterClass", _ADDED, _variable({"type": "integer", "default": "1"})),
    Mistake("ClusterClass", _ADDED, _variable({"type": "integer", "minimum": 3, "default": 1})),
    Mistake("ClusterClass", _ADDED, _variable({**_TEXT, "enum": [1]})),
    Mistake("ClusterClass", _ADDED, _variable({**_TEXT, "example": 1})),
    Mistake("ClusterClass", _ADDED, _variable({**_TEXT, "pattern": "^(a"})),
    Mistake("ClusterClass", _ADDED, _variable({"type": "array"})),
    Mistake(
        "ClusterClass",
        _ADDED,
        _variable({**_TEXT, "x-kubernetes-validations": [{"rule": "self >", "message": "no"}]}),
    ),
    Mistake(
        "ClusterClass",
        ("spec", "infrastructure", "templateRef", "kind"),
        "AcmeCluster",
    ),
    Mistake("ClusterClass", ("spec", "infrastructure", "naming", "template"), "{{ .cluster.name }"),
    Mistake("ClusterClass", ("spec", "infrastructure", "naming", "template"), "A-{{ .random }}"),
    Mistake("ClusterClass", ("spec", "controlPlane", "naming", "template"), "{{ .machine }}"),
    *(
        Mistake("ClusterClass", (*path, "naming", "template"), text)
        for path, text in (
            (("spec", "infrastructure"), "{{ .cluster.nam }}-{{ .random }}"),
            (("spec", "controlPlane"), "{{ .cluster.name.first }}"),
            (("spec", "controlPlane"), "{{ .cluster }}"),
            (("spec", "controlPlane"), "-{{ .cluster.name }}"),
            (("spec", "controlPlane"), "{{ .cluster.name | trunc 5 }}"),
            (_WORKER, "{{ .machineDeployment.topologyNam }}-{{ .random }}"),
        )
    ),
    Mistake(
        "ClusterClass",
        ("spec", "infrastructureNamingStrategy", "template"),
        "{{ .cluster.nam }}",
        ("v1beta1",),
    ),
    Mistake(
        "ClusterClass",
        _ADDED,
        _variable(
            {
                **_TEXT,
                "enum": ["a", "b"],
                "x-kubernetes-validations": [{"rule": "self != 'a'", "message": "no"}],
            }
        ),
    ),
    Mistake("ClusterClass", ("spec", "kubernetesVersions"), ["v1.35.0", "v1.34.0"]),
    Mistake("ClusterClass", ("spec", "kubernetesVersions"), ["v1.35.0", "v1.35.0"]),
    Mistake("ClusterClass", ("spec", "kubernetesVersions"), ["v1.33.0", "v1.35.0"]),
    *(
        Mistake("ClusterClass", ("spec", "kubernetesVersions"), versions)
        for versions in (
            ["latest"],
            ["v1.35.0", "1.35.0"],
            ["v1.35-rc.1"],
            ["v1.35.0", "2.0.0"],
            ["v1.35.0-rc.1", "v1.35.0-alpha.3"],
            ["v1.35.0+b.2", "v1.35.0+b.1"],
            ["v1.35.0-a..b"],
            ["v1.35.0-01"],
            [f"v1.{2**64}.0"],
            ["v1.35.0", f"v1.{'9' * 200}.0"],
        )
    ),
    Mistake(
        "ClusterClass", _ADDED, _variable({"type": "integer", "maximum": None, "default": "1"})
    ),
)
"""What the rule on ClusterClasses finds."""

_OF_SCHEMAS = (
    Mistake("ClusterClass", ("spec", "controlPlane", "metadata"), {"labels": {"a b": "c"}}),
    Mistake(
        "ClusterClass",
        ("spec", "controlPlane", "healthCheck", "checks"),
        {"nodeStartupTimeoutSeconds": 5},
    ),
    Mistake(
        "ClusterClass",
        (*_WORKER, "rollout", "strategy"),
        {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "many"}},
    ),
    Mistake("ClusterClass", ("spec", "colour"), "blue", VERSIONS),
    Mistake("ClusterClass", ("spec", "variables", 0, "required"), versions=VERSIONS),
    Mistake("Cluster", ("spec", "clusterNetwork", "pods", "cidrBlocks"), ["10.0.0.0"], VERSIONS),
    Mistake("Cluster", ("spec",), {"paused": True}, VERSIONS),
    Mistake("Cluster", ("spec", "paused"), "false", VERSIONS),
    Mistake("Cluster of a class", (*_TOPOLOGY, "version"), "latest", VERSIONS),
    Mistake("Cluster of a class", (*_TOPOLOGY, "version"), versions=VERSIONS),
    Mistake("Cluster of a class", (*_TOPOLOGY, "version"), "v1.35.0-a..b", VERSIONS),
    Mistake("Cluster of a class", (*_TOPOLOGY, "class"), CLASS),
    Mistake(
        "Cluster of a class",
        (*_TOPOLOGY, "workers", "machineDeployments"),
        [{"class": "worker", "name": "md-0"}, {"class": "worker", "name": "md-0"}],
        VERSIONS,
    ),
    Mistake(
        "Cluster of a class",
        (*_TOPOLOGY, "workers", "machineDeployments", 0),
        {"class": "worker", "name": "md-0", "replicas": 1, "metadata": {"annotations": _SCALED}},
        VERSIONS,
    ),
    Mistake(
        "Cluster of a class",
        (*_TOPOLOGY, "controlPlane", "metadata"),
        {"labels": {"a": "b c"}},
        VERSIONS,
    ),
    Mistake("MachineDeployment", (*_MACHINE, "version"), "latest", VERSIONS),
    Mistake("MachineDeployment", (*_MACHINE, "bootstrap"), {}, VERSIONS),
    Mistake("MachineDeployment", (*_MACHINE, "clusterName"), "other", VERSIONS),
    Mistake("MachineDeployment", (*_MACHINE, "nodeDrainTimeout"), "10m"),
    Mistake("MachineDeployment", ("spec", "selector"), {"matchLabels": {"a": "b"}}, VERSIONS),
    Mistake(
        "MachineDeployment",
        ("spec", "rollout", "strategy"),
        {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": f"{2**63}%"}},
    ),
    Mistake("MachineDeployment", ("spec", "strategy"), {"type": "RollingUpdate"}),
    Mistake("MachineDeployment", ("spec", "replicas"), "two", VERSIONS),
    Mistake("MachinePool", (*_MACHINE, "bootstrap"), {}, VERSIONS),
    Mistake("MachineHealthCheck", ("spec", "selector"), {}, VERSIONS),
    Mistake("MachineHealthCheck", ("spec", "maxUnhealthy"), "40%"),
    Mistake("ClusterResourceSet", ("spec", "clusterSelector"), {}, VERSIONS),
    Mistake("ClusterResourceSet", ("spec", "resources", 0, "kind"), "Deployment", VERSIONS),
    Mistake("KubeadmControlPlane", ("spec", "version"), "1.35", VERSIONS),
    Mistake("KubeadmControlPlane", ("spec", "version"), "v1.35.0-rc.01", VERSIONS),
    Mistake("MachineDeployment", (*_MACHINE, "version"), f"v1.{2**64}.0", VERSIONS),
    Mistake("KubeadmControlPlane", ("spec", "replicas"), 2, VERSIONS),
    Mistake("KubeadmControlPlane", ("spec", "rolloutStrategy"), {"type": "RollingUpdate"}),
    Mistake("KubeadmControlPlane", (*_CONFIG, "useExperimentalRetryJoin"), True),
    Mistake(
        "KubeadmControlPlane",
        (*_CONFIG, "clusterConfiguration", "apiServer", "extraArgs"),
        {"v": "4"},
    ),
    Mistake(
        "KubeadmConfigTemplate",
        (*_MACHINE, "initConfiguration", "nodeRegistration", "kubeletExtraArgs"),
        {"v": "4"},
    ),
    Mistake("KubeadmConfigTemplate", (*_MACHINE, "format"), "yaml", VERSIONS),
    Mistake("KubeadmConfig", ("spec", "files", 0, "contents"), "a", VERSIONS),
)

_IN = {"matchExpressions": [{"key": "a", "operator": "In"}]}
_OTHER = {"matchLabels": {"cluster.x-k8s.io/cluster-name": "other"}}
_CONDITION = {"type": "Ready", "status": "False"}
_ONCE: JSON = {"name": "v", "value": "1"}
_CLUSTER = (*_CONFIG, "clusterConfiguration")
_SCALE = "cluster.x-k8s.io/cluster-api-autoscaler-node-group"
_IGNITION = {"format": "ignition"}
_STOPPED = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}
_SECRET = {"secret": {"name": "a", "key": "b"}}
_EXTERNAL = {"endpoints": ["https://a"], "caFile": "a", "certFile": "b", "keyFile": "c"}


_CONTROL_PLANE = "node-role.kubernetes.io/control-plane"


def _taint(key: str) -> list[JSON]:
    return [{"key": key, "effect": "NoSchedule", "propagation": "Always"}]


_OF_SELECTORS = (
    Mistake("MachineHealthCheck", ("spec", "selector"), _IN, VERSIONS),
    Mistake("MachineHealthCheck", ("spec", "selector"), _OTHER, VERSIONS),
    Mistake("MachineHealthCheck", ("spec", "selector", "matchLabels"), {"a": "b c"}, VERSIONS),
    Mistake("ClusterResourceSet", ("spec", "clusterSelector", "matchLabels"), {"-a": "b"}),
    Mistake(
        "ClusterResourceSet",
        ("spec", "clusterSelector"),
        {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]},
        VERSIONS,
    ),
    *(
        Mistake("MachineHealthCheck", ("spec", "selector"), {"matchExpressions": [each]}, VERSIONS)
        for each in ({"key": "", "operator": "Exists"}, {"key": "a", "operator": ""})
    ),
    Mistake("ExtensionConfig", ("spec", "namespaceSelector"), _IN),
    Mistake("MachineDrainRule", ("spec", "machines", 0, "selector"), _IN, VERSIONS),
    Mistake("MachineDrainRule", ("spec", "machines", 0, "clusterSelector"), _IN),
    Mistake(
        "MachineDrainRule",
        ("spec", "pods", 0, "namespaceSelector"),
        {"matchExpressions": [{"key": "a b", "operator": "is", "values": ["c"]}]},
    ),
    Mistake("MachineDeployment", ("spec", "selector"), _IN, VERSIONS),
    *(
        Mistake(
            "MachineDeployment",
            ("spec", "selector"),
            {"matchExpressions": [{"key": "role", "operator": operator, **values}]},
            VERSIONS,
        )
        for operator, values in (
            ("NotIn", {"values": ["worker"]}),
            ("In", {"values": ["other"]}),
            ("DoesNotExist", {}),
        )
    ),
)
_OF_NAMES = (
    *(
        Mistake(kind, ("spec", "machineNaming", "template"), text)
        for kind, text in (
            ("MachineDeployment", "{{ .cluster.nam }}-{{ .random }}"),
            ("MachineDeployment", "{{ .cluster.name }}"),
            ("MachineDeployment", "{{ .machineSet.name -{{ .random }}"),
            ("MachineDeployment", "UP-{{ .random }}"),
            ("MachineDeployment", "{{ .cluster.name | trunc 5 }}-{{ .random }}"),
            ("MachineSet", "{{ .machineDeployment.name }}-{{ .random }}"),
            ("KubeadmControlPlane", "{{ .kubeadmControlPlane.nam }}-{{ .random }}"),
            ("KubeadmControlPlane", "{{ .cluster.name }}-{{.random}}"),
        )
    ),
    Mistake(
        "KubeadmControlPlaneTemplate",
        (*_MACHINE, "machineNaming", "template"),
        "{{ .cluster.name }}",
    ),
    Mistake(
        "MachineDeployment",
        ("spec", "machineNamingStrategy", "template"),
        "{{ .cluster.nam }}-{{ .random }}",
        ("v1beta1",),
    ),
    Mistake("MachineDeployment", ("metadata", "name"), "a" * 64, VERSIONS),
    Mistake("Cluster", ("metadata", "name"), "a" * 64, VERSIONS),
    Mistake("ExtensionConfig", ("metadata", "name"), "a.b"),
    Mistake("ExtensionConfig", ("metadata", "name"), "a" * 64),
    Mistake(
        "MachinePool",
        ("metadata", "annotations"),
        {f"{_SCALE}-min-size": "1", f"{_SCALE}-max-size": "2147483648"},
        VERSIONS,
    ),
    *(
        Mistake(
            kind,
            ("metadata", "annotations"),
            {f"{_SCALE}-min-size": "one", f"{_SCALE}-max-size": "3"},
            VERSIONS,
        )
        for kind in ("MachineDeployment", "MachinePool")
    ),
    *(
        Mistake(
            "Cluster of a class",
            ("metadata", "annotations"),
            {"topology.cluster.x-k8s.io/upgrade-concurrency": value},
            VERSIONS,
        )
        for value in ("many", "0")
    ),
)
_OF_RULES = (
    Mistake(
        "MachineHealthCheck",
        ("spec", "checks", "unhealthyMachineConditions"),
        [{**_CONDITION, "timeoutSeconds": 300}],
    ),
    Mistake(
        "MachineHealthCheck",
        ("spec", "unhealthyMachineConditions"),
        [{**_CONDITION, "timeout": "5m"}],
        ("v1beta1",),
    ),
    Mistake("MachineDrainRule", ("spec", "pods"), [{"selector": {}}, {"selector": {}}], VERSIONS),
    Mistake("KubeadmControlPlane", (*_CLUSTER, "apiServer", "extraArgs"), [_ONCE, _ONCE]),
    Mistake(
        "KubeadmConfigTemplate",
        (*_MACHINE, "joinConfiguration", "nodeRegistration", "kubeletExtraArgs"),
        [_ONCE, {**_ONCE, "value": "2"}],
    ),
    Mistake("KubeadmConfig", ("spec", "diskSetup", "partitions"), [{"device": "/dev/sda"}]),
)
_OF_WEBHOOKS = (
    Mistake("Machine", ("spec", "bootstrap"), {}, VERSIONS),
    Mistake("Machine", ("spec", "bootstrap", "dataSecretName"), None, VERSIONS),
    Mistake("MachineHealthCheck", ("spec", "selector", "matchLabels", "role"), None, VERSIONS),
    Mistake("Cluster", ("spec", "infrastructureRef", "name"), None),
    *(
        Mistake("MachineDrainRule", ("spec", "drain"), {"behavior": behavior, "order": 3}, VERSIONS)
        for behavior in ("Skip", "WaitCompleted")
    ),
    *(
        Mistake("ExtensionConfig", ("spec", "clientConfig", *path), value)
        for path, value in (
            (("url",), "https://example.com"),
            ((), {"url": "http://example.com"}),
            (("service", "name"), "9acme"),
            (("service", "namespace"), "acme.system"),
            (("service", "path"), "hooks"),
            (("service", "port"), 70000),
            (("service", "port"), 0),
        )
    ),
    *(
        Mistake("IPAddress", ("spec", field), value, VERSIONS)
        for field, value in (
            ("address", "192.0.2.300"),
            ("address", "192.0.2.3/24"),
            ("address", "g::1"),
            ("prefix", 33),
            ("gateway", "router"),
        )
    ),
    *(
        Mistake("Cluster", ("spec", "clusterNetwork", "pods", "cidrBlocks"), [block], VERSIONS)
        for block in ("10.0.0.0/255.0.0.0", "fe80::1%a/64")
    ),
    *(
        Mistake(
            "KubeadmControlPlane",
            path,
            {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge}},
            versions,
        )
        for path, versions in (
            (("spec", "rollout", "strategy"), ("v1beta2",)),
            (("spec", "rolloutStrategy"), ("v1beta1",)),
        )
        for surge in (2, "10")
    ),
    Mistake("MachinePool", (*_MACHINE, "taints"), _taint("a")),
    Mistake("MachineDeployment", (*_MACHINE, "taints"), _taint("node.kubernetes.io/not-ready")),
    Mistake("MachineDeployment", (*_MACHINE, "taints"), _taint(_CONTROL_PLANE)),
    Mistake("MachineSet", (*_MACHINE, "taints"), _taint(_CONTROL_PLANE)),
    Mistake("Machine", ("spec", "taints"), _taint(_CONTROL_PLANE)),
    Mistake("Machine", ("spec", "taints"), _taint("node.cluster.x-k8s.io/uninitialized")),
    Mistake("MachineDeployment", ("spec", "rollout", "strategy"), _STOPPED),
    Mistake("MachineDeployment", ("spec", "strategy"), _STOPPED, ("v1beta1",)),
    Mistake(
        "MachineDeployment",
        ("spec", "rollout", "strategy"),
        {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0}},
    ),
    Mistake("ClusterClass", (*_WORKER, "rollout", "strategy"), _STOPPED),
    Mistake(
        "Cluster of a class",
        (*_TOPOLOGY, "workers", "machineDeployments", 0, "rollout", "strategy"),
        _STOPPED,
    ),
    *(
        Mistake("MachineHealthCheck", ("spec", field), value, ("v1beta1",))
        for field, value in (
            ("maxUnhealthy", "40"),
            ("nodeStartupTimeout", "5s"),
            ("nodeStartupTimeout", "-5m"),
            ("nodeStartupTimeout", "0h0m5s"),
            ("nodeStartupTimeout", "0.4m"),
            ("nodeStartupTimeout", "29.9s"),
            ("nodeStartupTimeout", "+10s"),
            ("nodeStartupTimeout", "3000000h"),
            ("nodeStartupTimeout", "10"),
            ("unhealthyConditions", [{**_CONDITION, "timeout": "5"}]),
        )
    ),
    Mistake("MachineDeployment", (*_MACHINE, "nodeDrainTimeout"), "5 m", ("v1beta1",)),
)
_OF_KUBEADM = (
    Mistake(
        "KubeadmControlPlane",
        ("spec", "remediationStrategy"),
        {"retryPeriod": "5", "minHealthyPeriod": "1h"},
        ("v1beta1",),
    ),
    Mistake(
        "KubeadmControlPlane",
        (*_CLUSTER, "apiServer"),
        {"timeoutForControlPlane": "5"},
        ("v1beta1",),
    ),
    *(
        Mistake("KubeadmControlPlane", _CLUSTER, value, VERSIONS)
        for value in (
            {"dns": {"imageTag": "latest"}},
            {"etcd": {"local": {"imageTag": "3:5"}}},
            {"etcd": {"local": {"imageTag": "3.5"}, "external": _EXTERNAL}},
        )
    ),
    Mistake("KubeadmControlPlane", _CLUSTER, {"certificateValidityPeriodDays": 3660}),
    *(
        Mistake(
            "KubeadmControlPlane",
            ("spec", "rollout", "strategy"),
            {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge}},
        )
        for surge in (0, 2)
    ),
    Mistake(
        "KubeadmControlPlane",
        (*_CONFIG, "initConfiguration", "timeouts"),
        {"controlPlaneComponentHealthCheckSeconds": 60},
    ),
    Mistake(
        "KubeadmControlPlane",
        (*_CONFIG, "files"),
        [{"path": "/a", "content": "a"}, {"path": "/a", "content": "b"}],
        VERSIONS,
    ),
    Mistake("KubeadmConfigTemplate", (*_MACHINE, "files", 0, "contentFrom"), _SECRET, VERSIONS),
    Mistake(
        "KubeadmConfigTemplate",
        (*_MACHINE, "users"),
        [{"name": "a", "passwd": "a", "passwdFrom": _SECRET}],
        VERSIONS,
    ),
    Mistake(
        "KubeadmConfigTemplate",
        (*_MACHINE, "ignition"),
        {"containerLinuxConfig": {"additionalConfig": "a"}},
        VERSIONS,
    ),
    *(
        Mistake("KubeadmConfigTemplate", _MACHINE, {**_IGNITION, **value})
        for value in (
            {"bootCommands": ["a"]},
            {"users": [{"name": "a", "inactive": True}]},
            {"files": [{"path": "/a", "content": "a", "encoding": "gzip"}]},
            {"diskSetup": {"partitions": [{"device": "a", "layout": True, "tableType": "mbr"}]}},
            {
                "diskSetup": {
                    "filesystems": [{"device": "a", "filesystem": "ext4", "partition": "auto"}]
                }
            },
        )
    ),
)
_OF_VALUES = (
    *(
        Mistake(kind, ("spec", "replicas"), -1, VERSIONS)
        for kind in ("KubeadmControlPlane", "MachineDeployment", "MachinePool", "MachineSet")
    ),
    *(
        Mistake(kind, ("spec", "clusterName"), "A B", VERSIONS)
        for kind in ("Machine", "MachineHealthCheck")
    ),
    *(
        Mistake(kind, (*path, "initConfiguration", "bootstrapTokens"), [{"token": "a"}], VERSIONS)
        for kind, path in (
            ("KubeadmConfig", ("spec",)),
            ("KubeadmConfigTemplate", _MACHINE),
            ("KubeadmControlPlane", _CONFIG),
        )
    ),
)
OF_OBJECTS = (
    *_OF_VALUES,
    *_OF_SCHEMAS,
    *_OF_SELECTORS,
    *_OF_NAMES,
    *_OF_RULES,
    *_OF_WEBHOOKS,
    *_OF_KUBEADM,
)
"""What the rule on objects of templates finds."""

OF_TOPOLOGIES = (
    Mistake("Cluster of a class", (*_TOPOLOGY, "variables"), [{"name": "other", "value": 1}]),
    Mistake("Cluster of a class", (*_TOPOLOGY, "variables", 0, "value"), "huge"),
    Mistake("Cluster of a class", (*_TOPOLOGY, "variables", 0, "value"), 3),
    Mistake("Cluster of a class", (*_TOPOLOGY, "variables"), []),
    Mistake(
        "Cluster of a class", (*_TOPOLOGY, "workers", "machineDeployments", 0, "class"), "other"
    ),
    Mistake(
        "Cluster of a class",
        (*_TOPOLOGY, "workers", "machineDeployments", 0, "variables", "overrides"),
        [{"name": "size", "value": "huge"}],
    ),
    Mistake(
        "Cluster of a class",
        (*_TOPOLOGY, "controlPlane", "variables", "overrides"),
        [{"name": "size", "value": "huge"}],
    ),
)
"""What the rule on Clusters of a ClusterClass finds."""

ACCEPTED = (
    Mistake("ClusterClass", ("spec", "kubernetesVersions"), ["1.34", "v1.35", "v1.35.1", "1.36.0"]),
    *(
        Mistake("ClusterClass", ("spec", "kubernetesVersions"), versions)
        for versions in (
            ["01.34.-rc.1", "v1.34.0-rc.1a"],
            ["v1.34.0+b", "v1.34.0+a", "v1.34.0+a.1"],
        )
    ),
    Mistake("ClusterClass", _ADDED, _variable({**_TEXT, "maxLength": None, "default": "a"})),
    Mistake(
        "MachinePool",
        ("metadata", "annotations"),
        {f"{_SCALE}-min-size": "+01", f"{_SCALE}-max-size": "2147483647"},
        VERSIONS,
    ),
    Mistake(
        "Cluster of a class",
        ("metadata", "annotations"),
        {"topology.cluster.x-k8s.io/upgrade-concurrency": "9999999999"},
    ),
    Mistake(
        "KubeadmControlPlane",
        ("spec", "rollout", "strategy"),
        {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "01"}},
    ),
    Mistake("KubeadmConfig", ("spec",), None, VERSIONS),
    Mistake("MachineHealthCheck", ("spec", "checks"), {}),
    Mistake("MachineDeployment", ("spec", "selector", "matchLabels", "role"), None, VERSIONS),
    *(
        Mistake("MachineDeployment", ("spec", "remediation"), {"maxInFlight": share})
        for share in ("+5%", "-5%")
    ),
    Mistake(
        "KubeadmControlPlane",
        (*_CONFIG, "initConfiguration", "bootstrapTokens"),
        [{"token": "abcdef.0123456789abcdef"}],
        VERSIONS,
    ),
    Mistake(
        "KubeadmControlPlane",
        (*_CONFIG, "joinConfiguration", "nodeRegistration", "taints"),
        [{"key": "a"}],
    ),
    Mistake("KubeadmControlPlane", (*_CLUSTER, "scheduler", "extraEnvs"), [{"value": "a"}]),
    Mistake("ClusterResourceSet", ("spec", "strategy"), "", VERSIONS),
    *(
        Mistake("MachineDeployment", path, "", ("v1beta1",))
        for path in (
            (*_MACHINE, "failureDomain"),
            (*_MACHINE, "providerID"),
            (*_MACHINE, "version"),
            ("spec", "machineNamingStrategy", "template"),
        )
    ),
    Mistake("Machine", ("spec", "failureDomain"), "", ("v1beta1",)),
    Mistake("MachineHealthCheck", ("spec", "unhealthyRange"), "", ("v1beta1",)),
)
"""Changes that core and kubeadm accept."""
