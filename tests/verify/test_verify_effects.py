"""Which class a violation has: deviations that public providers have, and that break nothing."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from capsmith.manifests import bundle
from capsmith.manifests.crds import Crd, read_crds
from capsmith.manifests.parse import Manifest
from tests.rules.cases import ROOT
from tests.verify.places import run
from tests.verify.releases import crd, ids, violations, write

V1BETA1 = "cluster.x-k8s.io/v1beta1"
V1BETA2 = "cluster.x-k8s.io/v1beta2"
Fields = dict[str, Any]


def classes(folder: Path, rule: str) -> dict[str, str]:
    """Return the class of each violation of a rule, by its message."""
    found = violations(str(folder), "--select", rule)
    return {violation["message"]: violation["class"] for violation in found}


def status_of(document: Fields) -> Fields:
    """Return the properties of the status of the only version."""
    schema = document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    properties: Fields = schema["properties"]["status"]["properties"]
    return properties


def manager(role: str) -> list[Fields]:
    """Return a manager that is bound to a ClusterRole of that name."""
    template = {"serviceAccountName": "acme", "containers": [{"name": "manager", "image": "x"}]}
    subject = {"kind": "ServiceAccount", "name": "acme", "namespace": "acme-system"}
    rbac = "rbac.authorization.k8s.io"
    return [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "acme", "namespace": "acme-system"},
            "spec": {"template": {"spec": template}},
        },
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "acme"},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": role},
            "subjects": [subject],
        },
    ]


def test_core_reads_a_list_of_any_list_type(tmp_path: Path) -> None:
    """Core decodes the list; its list type concerns only those who apply it."""
    cluster = crd("AcmeCluster", labels={V1BETA2: "v1"})
    item = {"type": "object", "properties": {"name": {"type": "string"}}}
    domains = status_of(cluster)["failureDomains"] = {"type": "array", "items": item}
    write(tmp_path, cluster)
    assert set(classes(tmp_path, "IC-08").values()) == {"advice"}
    domains.update(type="object", additionalProperties={"type": "object"})
    write(tmp_path, cluster)
    assert set(classes(tmp_path, "IC-08").values()) == {"breaks"}


def test_addresses_need_their_keys_in_objects_only(tmp_path: Path) -> None:
    """A manager may always write keys that the CRD does not require, but none that it prunes."""
    machine = crd("AcmeMachine", labels={V1BETA2: "v1"})
    text = {"type": "string"}
    item: Fields = {"type": "object", "properties": {"type": text, "address": text}}
    status_of(machine)["addresses"] = {"type": "array", "items": item}
    write(tmp_path, machine)
    optional = "AcmeMachine v1: status.addresses: items do not require address, type"
    assert classes(tmp_path, "IM-08") == {optional: "breaks-when"}
    del item["properties"]["type"]
    write(tmp_path, machine)
    undeclared = "AcmeMachine v1: status.addresses: items do not declare type"
    optional = "AcmeMachine v1: status.addresses: items do not require address"
    assert classes(tmp_path, "IM-08") == {undeclared: "breaks", optional: "breaks-when"}
    item["x-kubernetes-preserve-unknown-fields"] = True
    write(tmp_path, machine)
    assert set(classes(tmp_path, "IM-08").values()) == {"breaks-when"}


def test_the_scale_subresource_is_for_clients(tmp_path: Path) -> None:
    integer = {"type": "integer"}
    control_plane = crd(
        *("AcmeControlPlane", {V1BETA2: "v1"}),
        spec={"replicas": integer},
        group="controlplane.cluster.x-k8s.io",
    )
    status_of(control_plane).update(replicas=integer, readyReplicas={"type": "string"})
    write(tmp_path, control_plane)
    found = classes(tmp_path, "CP-04")
    assert {message.partition(": ")[2]: effect for message, effect in found.items()} == {
        "spec.replicas is declared, but subresources has no scale": "breaks-when",
        "status.selector is not declared; expected string": "breaks-when",
        "status.readyReplicas is string; expected integer": "breaks",
    }


@pytest.mark.parametrize("role", ["cluster-admin", "role-of-another-component"])
def test_a_role_that_the_release_does_not_have_may_allow_everything(
    tmp_path: Path, role: str
) -> None:
    path = write(tmp_path, crd("AcmeMachine", labels={V1BETA2: "v1"}), *manager(role))
    assert not {"RB-04", "RB-06", "RB-07"} & ids(path, tmp_path)


@pytest.mark.parametrize("role", ["view", "edit", "admin", "system:auth-delegator"])
def test_roles_of_kubernetes_do_not_cover_kinds_of_providers(tmp_path: Path, role: str) -> None:
    path = write(tmp_path, crd("AcmeMachine", labels={V1BETA2: "v1"}), *manager(role))
    assert "RB-06" in ids(path, tmp_path)


def test_a_binding_of_one_namespace_allows_nothing_in_others(tmp_path: Path) -> None:
    deployment, binding = manager("cluster-admin")
    binding = copy.deepcopy(binding)
    binding["kind"] = "RoleBinding"
    binding["metadata"]["namespace"] = "acme-system"
    path = write(tmp_path, crd("AcmeMachine", labels={V1BETA2: "v1"}), deployment, binding)
    assert "RB-06" in ids(path, tmp_path)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: ${A}\nb: ${B}\n- name: x:\n  value: y\nc: ${C}\n", 3),
        ("a: ${A}\n\nb: c\nd: [\n", 5),
        ("a:\n- name: x:\n  value: ${V:=y}\n", 2),
    ],
)
def test_a_syntax_error_that_no_value_mends(tmp_path: Path, text: str, line: int) -> None:
    (tmp_path / "cluster-template.yaml").write_text(text)
    (found,) = violations(str(tmp_path))
    assert (found["id"], found["line"]) == ("manifest-yaml", line)


@pytest.mark.parametrize(
    "text",
    [
        "kind: Cluster\n${BLOCK}\n",
        "kind: Cluster\nspec:\n  ${BLOCK}\n  a: b\n",
        "kind: Cluster\nspec: ${LINE}\n  a: b\n",
    ],
)
def test_a_syntax_error_that_a_value_mends(tmp_path: Path, text: str) -> None:
    (tmp_path / "cluster-template.yaml").write_text(text)
    assert "manifest-yaml" not in {found["id"] for found in violations(str(tmp_path))}


def access(name: str, verbs: list[str], *resources: str) -> list[Fields]:
    """Return a Deployment with a container ``manager`` whose account has these verbs."""
    deployment, binding = copy.deepcopy(manager(name))
    deployment["spec"]["template"]["spec"]["serviceAccountName"] = name
    binding["subjects"][0]["name"] = name
    deployment["metadata"]["name"] = binding["metadata"]["name"] = name
    rule = {"apiGroups": ["*"], "resources": list(resources) or ["*"], "verbs": verbs}
    role = {"kind": "ClusterRole", "metadata": {"name": name}, "rules": [rule]}
    return [deployment, binding, {"apiVersion": "rbac.authorization.k8s.io/v1", **role}]


def test_a_deployment_beside_the_manager_needs_no_access(tmp_path: Path) -> None:
    """A cloud controller manager has a container `manager`, and reads what the manager writes."""
    machine, rules = crd("AcmeMachine", labels={V1BETA2: "v1"}), {"RB-06", "RB-07"}
    own, reader = access("acme", ["*"]), access("acme-ccm", ["get"])
    assert not rules & ids(write(tmp_path, machine, *own, *reader), tmp_path)
    assert rules <= ids(write(tmp_path, machine, *reader), tmp_path)


def test_two_managers_share_the_kinds(tmp_path: Path) -> None:
    machine, cluster = (crd(f"Acme{kind}", {V1BETA2: "v1"}) for kind in ("Machine", "Cluster"))
    names = ("acmemachines", "acmeclusters")
    managers = [access(name, ["*"], name, f"{name}/status") for name in names]
    path = write(tmp_path, machine, cluster, *managers[0], *managers[1])
    assert "RB-06" not in ids(path, tmp_path)
    assert "RB-06" in ids(write(tmp_path, machine, cluster, *managers[0]), tmp_path)


def test_pools_need_no_version_of_the_control_plane(tmp_path: Path) -> None:
    """The preflight checks of MachineSets and topologies read it; MachinePools do not wait."""
    plane = crd("AcmeControlPlane", labels={V1BETA2: "v1"}, spec={"version": {"type": "string"}})
    labels = {V1BETA2: "v1"}
    others = {
        "pools": [crd("AcmeMachinePool", labels)],
        "both": [crd("AcmeMachinePool", labels), crd("AcmeMachine", labels)],
        "neither": [],
    }
    found = {}
    for name, kinds in others.items():
        folder = tmp_path / name
        folder.mkdir()
        write(folder, plane, *kinds)
        found[name] = set(classes(folder, "CP-10").values())
    assert found == {"pools": {"breaks-when"}, "both": {"breaks"}, "neither": {"breaks"}}


def test_workers_of_a_managed_control_plane_may_be_other_than_machines(tmp_path: Path) -> None:
    """Node pools of the service, for example; only Machines are deleted without their Nodes."""
    plane = crd("AcmeControlPlane", labels={V1BETA2: "v1"}, spec={"version": {"type": "string"}})
    write(tmp_path, plane, crd("AcmeMachine", labels={V1BETA2: "v1"}))
    assert set(classes(tmp_path, "CP-25").values()) == {"breaks-when"}


def test_objects_are_judged_by_the_crds_of_their_own_release(tmp_path: Path) -> None:
    """Several releases of a provider may be judged at once."""
    for name, field in (("one", "size"), ("two", "flavor")):
        folder = tmp_path / name
        folder.mkdir()
        write(folder, crd("AcmeMachine", spec={field: {"type": "string"}}))
        machine = {
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1",
            "kind": "AcmeMachine",
            "metadata": {"name": "m", "namespace": "${NAMESPACE}"},
            "spec": {field: "small"},
        }
        write(folder, machine, name="cluster-template.yaml")
    assert violations(str(tmp_path), "--select", "CC-80") == []


def test_crds_of_other_providers_are_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The effort grows with the number of releases, not with its square."""
    read: list[int] = []

    def counted(manifests: tuple[Manifest, ...]) -> tuple[Crd, ...]:
        read.append(len(manifests))
        return read_crds(manifests)

    monkeypatch.setattr(bundle, "read_crds", counted)
    effort = []
    for number in (4, 8):
        for each in range(number):
            folder = tmp_path / f"{each}"
            folder.mkdir(exist_ok=True)
            write(folder, crd(f"Acme{each}Machine"))
            machine = {"apiVersion": "infrastructure.cluster.x-k8s.io/v1", "kind": "OtherMachine"}
            write(folder, {**machine, "metadata": {"name": "m"}}, name="cluster-template.yaml")
        read.clear()
        violations(str(tmp_path), "--select", "CC-80")
        effort.append(sum(read))
    assert effort[1] == 2 * effort[0]


def test_a_release_that_no_target_installs_is_named(tmp_path: Path) -> None:
    """Without violations it would look as if it were right."""
    write(tmp_path, crd("AcmeMachine", labels={V1BETA2: "v1"}))
    metadata = {
        "apiVersion": "clusterctl.cluster.x-k8s.io/v1alpha3",
        "kind": "Metadata",
        "releaseSeries": [{"major": 0, "minor": 1, "contract": "v1beta2"}],
    }
    write(tmp_path, metadata, name="metadata.yaml")
    file = str(tmp_path / "infrastructure-components.yaml")
    old = run(str(tmp_path), "--target", "core=v1.10", "--format", "json")
    assert json.loads(old.output)["notJudged"] == [f"{file}: no target supports contract v1beta2"]
    text = run(str(tmp_path), "--target", "core=v1.10").output
    assert f"not judged: {file}: no target supports contract v1beta2" in text
    new = run(str(tmp_path), "--target", "core=v1.13", "--format", "json")
    assert json.loads(new.output)["notJudged"] == []


@pytest.mark.parametrize(
    ("versions", "effect"),
    # Objects may still be stored in a version that is no longer served.
    [(("v1",), "advice"), (("v1beta1", "v1"), "breaks")],
)
@pytest.mark.parametrize("certificate", ["", "acme-system/lost"])
def test_a_crd_with_one_version_needs_no_conversion(
    tmp_path: Path, certificate: str, versions: tuple[str, ...], effect: str
) -> None:
    cluster = crd("AcmeCluster", {V1BETA2: "v1"}, versions)
    cluster["spec"]["versions"][0]["served"] = len(versions) == 1
    if certificate:
        cluster["metadata"]["annotations"] = {"cert-manager.io/inject-ca-from": certificate}
    client = {"service": {"name": "lost", "namespace": "acme-system", "path": "/convert"}}
    cluster["spec"]["conversion"] = {
        "strategy": "Webhook",
        "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client},
    }
    write(tmp_path, cluster, *manager("acme")[:1])
    for rule in ("CC-36", "CC-37"):
        assert list(classes(tmp_path, rule).values()) == [effect]


@pytest.mark.parametrize(
    ("rule", "labels", "when"),
    [
        (
            "GEN-06",
            {V1BETA1: "v1", V1BETA2: "v1"},
            "a ClusterClass has the control plane, with machineInfrastructure, readiness gates, "
            "taints or timeouts for its Machines",
        ),
        ("GEN-07", {V1BETA2: "v1"}, "a ClusterClass names the version"),
    ],
)
def test_topology_looks_for_the_contract_of_a_control_plane_s_version(
    tmp_path: Path, rule: str, labels: dict[str, str], when: str
) -> None:
    """Core up to v1.10 knows one contract, and does not look."""
    group = "controlplane.cluster.x-k8s.io"
    write(
        tmp_path,
        crd("AcmeControlPlane", labels, ("v1beta1", "v1")[rule == "GEN-06" :], group=group),
    )
    (found,) = violations(str(tmp_path), "--select", rule)
    assert (found["class"], found["when"]) == ("breaks-when", when)
    assert found["core"] == ["v1.11", "v1.12", "v1.13", "v1.14", "v1.15"]
    assert not violations(str(tmp_path), "--select", rule, "--target", "core=v1.10")


def test_a_manager_may_only_read_pools(tmp_path: Path) -> None:
    """Claims and addresses are written; a pool may be a description without status."""
    pool = crd("AcmeIPPool", group="ipam.cluster.x-k8s.io")
    role: Fields = {"kind": "ClusterRole", "metadata": {"name": "acme"}}
    role["apiVersion"] = "rbac.authorization.k8s.io/v1"
    rule = {"apiGroups": ["ipam.cluster.x-k8s.io"], "resources": ["acmeippools"]}
    effects = []
    for verbs in (["list", "watch"], ["list", "watch", "patch"], ["patch", "update"]):
        role["rules"] = [{**rule, "verbs": verbs}]
        write(tmp_path, pool, role, *manager("acme"), name="ipam-components.yaml")
        effects.append(classes(tmp_path, "RB-06"))
    neither = "the manager can neither patch nor update acmeippools"
    of_group = ".ipam.cluster.x-k8s.io"
    assert effects == [
        {f"{neither}{of_group}": "advice", f"{neither}/status{of_group}": "advice"},
        {f"{neither}/status{of_group}": "breaks"},
        {
            f"the manager cannot list, watch acmeippools{of_group}": "breaks",
            f"{neither}/status{of_group}": "breaks",
        },
    ]


@pytest.mark.parametrize("is_part_required", [False, True])
def test_an_optional_endpoint_may_require_its_host(tmp_path: Path, is_part_required: bool) -> None:
    text, number = {"type": "string"}, {"type": "integer"}
    endpoint = {
        "type": "object",
        "properties": {"host": text, "port": number},
        "required": ["host"],
    }
    cluster = crd("AcmeCluster", {V1BETA2: "v1"}, spec={"controlPlaneEndpoint": endpoint})
    if is_part_required:
        schema = cluster["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        schema["properties"]["spec"]["required"] = ["controlPlaneEndpoint"]
    write(tmp_path, cluster)
    effect = "breaks-when" if is_part_required else "advice"
    message = "AcmeCluster v1: spec.controlPlaneEndpoint.host is required; expected optional"
    assert classes(tmp_path, "IC-02") == {message: effect}


@pytest.mark.parametrize(
    ("container", "effect"),
    [
        ({"ports": [{"name": "webhook-server", "containerPort": 9443}]}, "breaks-when"),
        ({"ports": [{"containerPort": 9444}]}, ""),
        ({"ports": [{"containerPort": 9443}], "args": ["--webhook-port=9444"]}, ""),
        ({}, ""),
    ],
)
def test_a_port_number_need_not_be_declared(tmp_path: Path, container: Fields, effect: str) -> None:
    deployment = manager("acme")[0]
    template = deployment["spec"]["template"]
    template["metadata"] = {"labels": {"app": "acme"}}
    template["spec"]["containers"][0] |= container
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "webhook", "namespace": "acme-system"},
        "spec": {"selector": {"app": "acme"}, "ports": [{"port": 443, "targetPort": 9444}]},
    }
    client = {"service": {"name": "webhook", "namespace": "acme-system"}}
    hook = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "acme"},
        "webhooks": [{"name": "a.example.com", "clientConfig": client}],
    }
    write(tmp_path, deployment, service, hook)
    assert "".join(classes(tmp_path, "CC-36").values()) == effect


def test_a_crd_of_a_removed_version_is_reported_in_source_trees(tmp_path: Path) -> None:
    """The single version of such a CRD is in spec.version; a patch has none."""
    old = crd("AcmeMachine")
    old["apiVersion"] = "apiextensions.k8s.io/v1beta1"
    del old["spec"]["versions"]
    write(tmp_path, old, name="patch.yaml")
    assert classes(tmp_path, "CRD-26") == {}
    old["spec"]["version"] = "v1alpha1"
    write(tmp_path, old, name="crd.yaml")
    assert "breaks" in classes(tmp_path, "CRD-26").values()


def test_copies_of_a_crd_with_other_labels_are_named_in_source_trees(tmp_path: Path) -> None:
    """Which of them a release has cannot be seen; patches of other objects are no copies."""
    role: Fields = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
    role["metadata"] = {"name": "acme"}
    first = write(tmp_path, crd("AcmeMachine", {V1BETA2: "v1"}), role, name="a.yaml")
    write(tmp_path, crd("AcmeMachine"), {**role, "rules": []}, name="b.yaml")
    message = (
        "CustomResourceDefinition acmemachines.infrastructure.cluster.x-k8s.io is also in "
        f"{first}:1, with other labels"
    )
    assert classes(tmp_path, "CC-49") == {message: "breaks-when"}
    write(tmp_path, crd("AcmeMachine", {V1BETA2: "v1"}), name="b.yaml")
    assert classes(tmp_path, "CC-49") == {}


def test_values_that_a_shell_replaces_are_not_judged_in_source_trees(tmp_path: Path) -> None:
    """A release has no shell, so that the API server refuses them there."""
    service: Fields = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "mysql-$NAME"},
        "spec": {"selector": {"instance": "$NAME"}, "ports": [{"port": 3306}]},
    }
    write(tmp_path, service, name="mysql.yaml")
    assert classes(tmp_path, "CC-81") == {}
    write(tmp_path, service)
    assert len(classes(tmp_path, "CC-81")) == 2


@pytest.mark.parametrize("is_first", [True, False])
def test_clusterctl_merges_the_labels_of_copies_of_a_crd(tmp_path: Path, is_first: bool) -> None:
    """It applies one after the other, as a merge patch, which removes nothing."""
    labelled = crd("AcmeMachine", {V1BETA1: "v1", V1BETA2: "v1"})
    copies = [labelled, crd("AcmeMachine")]
    write(tmp_path, *(copies if is_first else reversed(copies)))
    assert classes(tmp_path, "GEN-01") == {}
    write(tmp_path, *(crd("AcmeMachine") for _ in range(2)))
    assert set(classes(tmp_path, "GEN-01").values()) == {"breaks"}


def test_a_crd_of_a_removed_version_is_read_as_it_was_meant(tmp_path: Path) -> None:
    """Its versions may share a schema, which says what fields the kind has."""
    old = crd("AcmeMachine", {V1BETA2: "v1"})
    old["apiVersion"] = "apiextensions.k8s.io/v1beta1"
    (version,) = old["spec"]["versions"]
    old["spec"]["validation"] = version.pop("schema")
    old["spec"]["subresources"] = version.pop("subresources")
    sample: Fields = {"apiVersion": "infrastructure.cluster.x-k8s.io/v1", "kind": "AcmeMachine"}
    sample |= {"metadata": {"name": "a"}, "spec": {"providerID": "acme://a"}}
    write(tmp_path, sample, name="cluster-template.yaml")
    write(tmp_path, old)
    assert classes(tmp_path, "CRD-26")
    for rule in ("CC-80", "IM-03", "CRD-06"):
        assert classes(tmp_path, rule) == {}
    del old["spec"]["validation"]
    write(tmp_path, old)
    assert classes(tmp_path, "CC-80") == {}


@pytest.mark.parametrize(
    ("at", "effect"), [("", "breaks"), ("spec", "breaks"), ("spec.size", "breaks-when")]
)
def test_a_class_need_not_change_the_field_of_a_template_that_is_immutable(
    tmp_path: Path, at: str, effect: str
) -> None:
    template = crd("AcmeMachineTemplate", {V1BETA2: "v1"})
    size: Fields = {"type": "string"}
    spec: Fields = {"type": "object", "properties": {"size": size}}
    whole: Fields = {"type": "object", "properties": {"spec": spec}}
    schema = template["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    schema["spec"]["properties"] = {"template": whole}
    rules = {"x-kubernetes-validations": [{"rule": "self == oldSelf"}]}
    {"": whole, "spec": spec, "spec.size": size}[at].update(rules)
    write(tmp_path, template, crd("AcmeMachine", {V1BETA2: "v1"}))
    assert list(classes(tmp_path, "IM-14").values()) == [effect]


def test_an_object_that_cannot_be_read_hides_no_other_one(tmp_path: Path) -> None:
    """clusterctl separates objects before it reads them, so others are judged as well."""
    path = write(tmp_path, crd("AcmeMachine"))
    path.write_text("kind: [\n---\n" + path.read_text() + "---\nkind: }\n")
    lines = {each["id"]: each["line"] for each in violations(str(tmp_path))}
    assert lines["GEN-01"] > 3
    assert len([each for each in violations(str(tmp_path)) if each["id"] == "manifest-yaml"]) == 2


def test_a_build_may_replace_the_image_of_sources(tmp_path: Path) -> None:
    """`kustomize edit set image` does, in projects of kubebuilder."""
    write(tmp_path, *manager("acme"), name="manager.yaml")
    (effect,) = classes(tmp_path, "CC-27").values()
    assert effect == "breaks-when"
    write(tmp_path, *manager("acme"))
    (effect,) = classes(tmp_path, "CC-27").values()
    assert effect == "breaks"


@pytest.mark.parametrize(("name", "count"), [("examples", 0), ("samples", 0), ("templates", 1)])
def test_an_example_of_a_class_is_no_file_of_a_release(
    tmp_path: Path, name: str, count: int
) -> None:
    folder = tmp_path / name
    folder.mkdir()
    example = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "ClusterClass"}
    write(folder, example | {"metadata": {"name": "a"}}, name="clusterclass-cluster.yaml")
    write(tmp_path, crd("AcmeMachine"))
    assert len(classes(tmp_path, "CC-73")) == count


def test_without_metadata_labels_say_which_core_installs_the_release(tmp_path: Path) -> None:
    write(tmp_path, crd("AcmeMachine", {V1BETA2: "v1"}), name="crd.yaml")
    assert not violations(str(tmp_path), "--select", "GEN-01")
    write(tmp_path, crd("AcmeMachine"), name="crd.yaml")
    found = violations(str(tmp_path), "--select", "GEN-01")
    assert {core for violation in found for core in violation["core"]} >= {"v1.10", "v1.15"}


def test_not_all_managers_of_addresses_read_clusters(tmp_path: Path) -> None:
    """A manager that does not look whether a Cluster is paused gets no error."""
    source = ROOT / "IP-14" / "bad" / "crds.yaml"
    write(tmp_path, *yaml.safe_load_all(source.read_text(encoding="utf-8")))
    assert classes(tmp_path, "IP-14") == {
        "the manager cannot create, delete ipaddresses.ipam.cluster.x-k8s.io": "breaks",
        "the manager cannot get, list, watch clusters.cluster.x-k8s.io": "breaks-when",
    }


def test_the_kind_of_lists_breaks_nothing(tmp_path: Path) -> None:
    """Proves: CRD-04."""
    document = crd("CoralMachine", labels={V1BETA2: "v1"})
    document["spec"]["names"]["listKind"] = "CoralMachines"
    write(tmp_path, document)
    found = violations(str(tmp_path), "--select", "CRD-04", "--advice")
    assert [each["class"] for each in found] == ["advice"]


def test_a_long_kind_is_refused_in_references(tmp_path: Path) -> None:
    """Proves: CRD-04."""
    write(tmp_path, crd(f"{'C' * 50}Machine", labels={V1BETA2: "v1"}))
    (found,) = classes(tmp_path, "CRD-04").items()
    assert found[1] == "breaks-when"


def test_required_replicas_break_a_topology_without_them(tmp_path: Path) -> None:
    """Proves: CP-04."""
    document = crd("CoralControlPlane", labels={V1BETA2: "v1"}, group="controlplane.acme.io")
    schema = document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    schema["spec"] = {
        "type": "object",
        "required": ["replicas"],
        "properties": {"replicas": {"type": "integer"}},
    }
    write(tmp_path, document)
    found = classes(tmp_path, "CP-04")
    message = "CoralControlPlane v1: spec.replicas is required; expected optional"
    assert found[message] == "breaks-when"
