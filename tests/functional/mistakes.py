"""Mistakes that an author of a provider could make, one edit of a generated repository each.

``test_kits.py`` plants them and expects the conformance kit to fail; ``scenarios.yaml`` names for
each scenario a mistake that fails it, as runs of the whole kit have shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

EXAMPLES = Path(__file__).parents[2] / "examples"


class Mistake(NamedTuple):
    """One text of a repository, and what a mistaken author writes instead."""

    path: str
    """A glob below the root of the repository that matches one file."""
    right: str
    wrong: str
    """May use `uuid`, for what differs at each call: ids of objects do not, memory is reused."""
    further: tuple[tuple[str, str], ...] = ()
    """Further texts of the file, each with what the author writes instead."""

    def apply_to(self, text: str) -> str:
        """Return the text of the file with the mistake."""
        head = "from __future__ import annotations\n"
        text = text.replace(head, f"{head}\nimport uuid\n", 1)
        for right, wrong in ((self.right, self.wrong), *self.further):
            assert right in text
            text = text.replace(right, wrong)
        return text


@dataclass(frozen=True)
class Kit:
    """The kit of one repository, and the mistakes that it finds."""

    description: str
    """The text of its provider.yaml."""
    mistakes: Mapping[str, Mistake]
    right: tuple[Mistake, ...] = ()
    """Edits that are right, of code that only mistakes have otherwise."""
    authored: tuple[Mistake, ...] = ()
    """Edits that are right, and in which the mistakes are planted."""
    wait_seconds: int = 10
    """How long a scenario waits for a state that a mistake may prevent, on its virtual clock."""


def _example(name: str) -> str:
    return (EXAMPLES / name / "provider.yaml").read_text(encoding="utf-8")


def _controller(name: str, right: str, wrong: str, *further: tuple[str, str]) -> Mistake:
    return Mistake(f"src/*/controllers/{name}.py", right, wrong, further)


_PLACES = "                machine.failure_domain,\n            )"
_REPORTS = "failure_domain=server.zone"
_FINDS = "server = self._cloud.find_server(machine.external_id)"


def _search(instead: str) -> Mistake:
    """Replace how a reconciler searches for the server of its machine."""
    rest = "\n        if server is None and machine.is_provisioned:"
    return _controller("acme_machine", _FINDS + rest, instead + rest)


_INFRASTRUCTURE: Final = {
    # It returns the right server: another provider id at each call would be one more mistake.
    "creates a server at each call": _search(
        f"self._cloud.create_server(str(uuid.uuid4()), 'x', 'y', None)\n        {_FINDS}"
    ),
    "creates before it looks, after a crash": _controller(
        "acme_machine",
        "if server is None and provider_id is None:",
        "if machine.provider_id is None:\n"
        "            server = self._cloud.create_server(str(uuid.uuid4()), 'x', 'y', None)\n"
        "        elif server is None:",
    ),
    "identifies servers by a uid that a move changes": _controller(
        "acme_machine",
        "machine.external_id",
        "machine.machine.uid if hasattr(machine, 'spec') and machine.machine else 'x'",
    ),
    "deletes the server that the provider id names": _controller(
        "acme_machine",
        "if self._cloud.delete_server(machine.external_id):",
        "for path in (self._cloud.folder / 'servers').iterdir():\n"
        "            if machine.provider_id and machine.provider_id in path.read_text():\n"
        "                path.unlink()\n"
        "        if self._cloud.delete_server(machine.external_id):",
    ),
    "has another account at each login": _controller(
        "acme_machine",
        "class AcmeMachineReconciler(InfraMachineReconciler[AcmeMachineSpec]):\n",
        "from capsmith_runtime.infrastructure import SessionFactory\n\n\n"
        "class Clients(SessionFactory[str]):\n"
        "    def open(self, credentials):\n"
        "        return str(uuid.uuid4())\n\n"
        "    def account(self, session):\n"
        "        return session\n\n\n"
        "class AcmeMachineReconciler(InfraMachineReconciler[AcmeMachineSpec]):\n"
        "    session_factory = Clients\n",
    ),
    "creates a server again after it disappeared": _controller(
        "acme_machine",
        "if server is None and machine.is_provisioned:",
        "if server is None:\n"
        "            self._cloud.create_server(machine.external_id, 'x', 'y', None)\n"
        "        if server is None and machine.is_provisioned:",
    ),
    "changes the provider id": _controller(
        "acme_machine",
        "provider_id=server.provider_id",
        "provider_id=f'{server.provider_id}/{uuid.uuid4()}'",
    ),
    "creates servers in any failure domain": _controller("acme_machine", _PLACES, "            )"),
    "creates servers in the last failure domain": _controller(
        "acme_machine", _PLACES, "                self._cloud.zones[-1],\n            )"
    ),
    "creates servers in the failure domains in turn": _controller(
        "acme_machine",
        _PLACES,
        "                self._cloud.zones[\n"
        "                    1 - len([*(self._cloud.folder / 'servers').iterdir()]) % 2\n"
        "                ],\n            )",
    ),
    # The status then has what the Machine requires, wherever the server is.
    "reports the failure domain that the Machine requires": _controller(
        "acme_machine",
        _PLACES,
        "                self._cloud.zones[0],\n            )",
        (_REPORTS, "failure_domain=machine.failure_domain"),
    ),
    "reports another failure domain than that of the server": _controller(
        "acme_machine", _REPORTS, "failure_domain=self._cloud.zones[0]"
    ),
    "reports no failure domain": _controller("acme_machine", _REPORTS, "failure_domain=None"),
    "gives all machines one provider id": _controller(
        "acme_machine", "provider_id=server.provider_id", "provider_id='acme://one'"
    ),
    "reports other addresses at each call": _controller(
        "acme_machine", '"127.0.0.1"', "f'10.0.0.{uuid.uuid4().int % 250}'"
    ),
    "reports a progress that changes at each call": _controller(
        "acme_machine",
        "            failure_domain=server.zone,\n        )",
        "            failure_domain=server.zone,\n"
        "            requeue_after=0.5,\n"
        "            message=str(uuid.uuid4()),\n"
        "        )",
    ),
    "forgets to delete the server": _controller(
        "acme_machine", "self._cloud.delete_server(machine.external_id)", "None"
    ),
    "needs the Machine to delete": _controller(
        "acme_machine",
        "if self._cloud.delete_server(machine.external_id):",
        "if machine.machine.name and self._cloud.delete_server(machine.external_id):",
    ),
    "does not delete a server that is not listed yet": _controller(
        "acme_machine",
        "if self._cloud.delete_server(machine.external_id):",
        "if self._cloud.find_server(machine.external_id):\n"
        "            self._cloud.delete_server(machine.external_id)",
    ),
    "considers a server that is not listed yet as lost": _controller(
        "acme_machine", "machine.is_provisioned:", "machine.provider_id:"
    ),
    "hides the failures of deletions": _controller(
        "acme_machine",
        "        if self._cloud.delete_server(machine.external_id):\n"
        '            machine.logger.info("deleted")\n',
        "        try:\n"
        "            self._cloud.delete_server(machine.external_id)\n"
        "        except Exception:\n"
        "            pass\n",
    ),
    "returns no state for a machine": _controller(
        "acme_machine", "return InfraMachineState(", "return None and InfraMachineState("
    ),
    "raises in the machine": _controller(
        "acme_machine", "server = self._cloud", "raise OSError; server = self._cloud"
    ),
    "supplies no endpoint": _controller(
        "acme_cluster", "cluster.control_plane_endpoint or Endpoint(host, port)", "None"
    ),
    "forgets to delete what machines share": _controller(
        "acme_cluster", "self._cloud.delete_cluster(cluster.external_id)", "None"
    ),
    "creates another network at each call": _controller(
        "acme_cluster",
        "network = self._cloud.find_cluster(cluster.external_id)",
        "network = self._cloud.create_cluster(str(uuid.uuid4()), cluster.name)",
    ),
    "identifies networks by the Cluster": _controller(
        "acme_cluster",
        "cluster.external_id",
        "(cluster.cluster.uid if cluster.cluster else 'none')",
    ),
    "needs the Cluster to delete": _controller(
        "acme_cluster",
        "if self._cloud.delete_cluster(cluster.external_id):",
        "if cluster.cluster.name and self._cloud.delete_cluster(cluster.external_id):",
    ),
    "raises in the cluster": _controller(
        "acme_cluster", "network = self._cloud", "raise OSError; network = self._cloud"
    ),
    "misspells a field in a sample": Mistake(
        "config/samples/acme_identity.yaml", "secretRef:", "secretReference:"
    ),
    "misspells a field in a template": Mistake(
        "templates/cluster-template.yaml", "kind: AcmeMachineTemplate\n", "kind: AcmeTemplate\n"
    ),
}

_POOL = "tidal_machine_pool"
_GROUPS = "src/*/server_groups.py"
_POOLS: Final = {
    "never deletes a server": Mistake(
        _GROUPS, "for server in servers[size:]:", "for server in servers[:0]:"
    ),
    "creates another group at each call": _controller(
        _POOL, "pool.external_id, pool.name,", "f'{pool.external_id}{uuid.uuid4()}', pool.name,"
    ),
    "replaces all servers when the size changes": Mistake(
        _GROUPS,
        "servers = self.servers(external_id)\n            outdated",
        "servers = self.servers(external_id)\n"
        "            if len(servers) != size:\n"
        "                for old in servers:\n"
        "                    self._cloud.delete_server(old.id)\n"
        "                servers = []\n            outdated",
    ),
    "does not look at the size": _controller(_POOL, "else pool.replicas\n", "else 1\n"),
    "returns one provider id for all": _controller(
        _POOL, "provider_id=server.provider_id", "provider_id='tidal://one'"
    ),
    "forgets to delete the group": _controller(
        _POOL, "self._groups.delete(pool.external_id)", "None"
    ),
    "needs the MachinePool to delete": _controller(
        _POOL,
        "if self._groups.delete(pool.external_id)",
        "if pool.machine_pool and self._groups.delete(pool.external_id)",
    ),
    "reports other versions at each call": _controller(
        _POOL, "version=server.version,", "version=f'v1.30.{uuid.uuid4().int % 99}',"
    ),
    "does not replace outdated servers": Mistake(
        _GROUPS, "if version and server.version != version]", "if server is None]"
    ),
    "reports the desired version of outdated servers": _controller(
        _POOL,
        "instances=[_instance(server) for server in servers],",
        "instances=[\n"
        "                __import__('dataclasses').replace(\n"
        "                    _instance(server), version=pool.version\n"
        "                )\n"
        "                for server in servers\n"
        "            ],",
    ),
    "writes back a size that its own autoscaler may have changed": _controller(
        _POOL,
        "exists = self._groups.find(pool.external_id) is not None\n"
        "        # Another autoscaler may change the group's size at any moment: never write back a"
        " size.\n"
        "        size = None if exists and pool.replicas_managed_elsewhere else pool.replicas\n",
        "group = self._groups.find(pool.external_id)\n"
        "        size = group.size if group and pool.replicas_managed_elsewhere"
        " else pool.replicas\n",
    ),
    "overrules its own autoscaler": _controller(
        _POOL,
        "size = None if exists and pool.replicas_managed_elsewhere else pool.replicas",
        "size = pool.replicas if exists else pool.replicas",
    ),
    "reports of a machine what belongs to another position": _controller(
        _POOL,
        "instances=[_instance(server) for server in servers],",
        "instances=[\n"
        "                __import__('dataclasses').replace(\n"
        "                    _instance(server),\n"
        "                    conditions=_instance(other).conditions,\n"
        "                )\n"
        "                for server, other in zip(servers, reversed(servers))\n"
        "            ],",
    ),
    "reports the zone of a position in the list": _controller(
        _POOL,
        "instances=[_instance(server) for server in servers],",
        "instances=[\n"
        "                __import__('dataclasses').replace(\n"
        "                    _instance(server),\n"
        "                    status=TidalMachinePoolInstanceStatus(zone=f'zone-{place}'),\n"
        "                )\n"
        "                for place, server in enumerate(reversed(servers))\n"
        "            ],",
    ),
    "returns nothing": _controller(_POOL, "return InfraMachinePoolState(", "return None and str("),
    "asks for one machine, always": _controller("tidal_node_pool", "return None", "return 1"),
    "creates machines of pools again": _controller(
        "tidal_machine",
        "self._cloud.create_server(\n                machine.external_id,",
        "self._cloud.create_server(\n                f'{machine.external_id}{uuid.uuid4()}',",
    ),
    "creates machines of pools in any failure domain": _controller(
        "tidal_machine", _PLACES, "            )"
    ),
    "reports no capacity": _controller("tidal_machine", '{"cpu": "2", "memory": "4Gi"}', "{}"),
}

_BOOTSTRAP: Final = {
    "hands the key of the CA to workers": _controller(
        "kindle_config", "if config.is_control_plane:", "if files:"
    ),
    "returns nothing": _controller(
        "kindle_config", "return BootstrapDocument(document,", "return None and BootstrapDocument("
    ),
    "knows no pools": _controller(
        "kindle_config", "_token(config.name,", "_token(config.machine.name,"
    ),
    "requests certificates that do not exist": _controller(
        "kindle_config", '.certificate("ca")', '.certificate("front")'
    ),
    "keeps its own state of who is the first": _controller(
        "kindle_config",
        'ca = config.certificate("ca")',
        'ca = config.certificate("ca")\n'
        "        if config.is_first_control_plane and getattr(type(self), '_did', False):\n"
        "            return Waiting('Initialized', 'once is enough')\n"
        "        type(self)._did = config.is_first_control_plane",
    ),
    "renews the data once": _controller(
        "kindle_config",
        "        return self.bootstrap_data(config)\n",
        "        found = self.bootstrap_data(config)\n"
        "        return BootstrapDocument(found.value, found.format)\n",
    ),
    "never renews the data of a pool": _controller(
        "kindle_config",
        "refresh_after=TOKEN_SECONDS / 2",
        "refresh_after=TOKEN_SECONDS / 2 if config.machine else None",
    ),
    "creates a mirror when its kind is loaded": _controller(
        "kindle_mirror",
        "self._cloud = cloud or SimulatedCloud()",
        "self._cloud = cloud or SimulatedCloud()\n"
        "        self._cloud.create_resource('mirror', 'mirror')",
    ),
    "forgets to delete a mirror": _controller(
        "kindle_mirror", "self._cloud.delete_resource(resource.external_id)", "None"
    ),
}

_CONTROL_PLANE: Final = {
    "is never healthy": _controller(
        "skiff_control_plane",
        "return ControlPlaneHealth()",
        'return Waiting("Unhealthy", "wait", requeue_after=5)',
    ),
    "reports another problem at each call": _controller(
        "skiff_control_plane",
        "return ControlPlaneHealth()",
        "return ControlPlaneHealth(\n"
        "            unhealthy={m.name: str(uuid.uuid4()) for m in control_plane.machines[:1]}\n"
        "        )",
    ),
    "waits for each new member for ever": _controller(
        "skiff_control_plane",
        'member.control_plane.logger.info("joined", machine=member.machine.name)\n'
        "        return None",
        'return Waiting("Joining", "wait", requeue_after=5)',
    ),
    "never lets a member go": _controller(
        "skiff_control_plane",
        'member.control_plane.logger.info("leaves", machine=member.machine.name)\n'
        "        return None",
        'return Waiting("Leaving", "wait", requeue_after=5)',
    ),
}

_ADDRESSES: Final = {
    "derives pools from what another system allocates": _controller(
        "skiff_ip_pool",
        "    To read the ranges",
        '    """\n\n    def reconcile_normal(self, pool):\n'
        "        raise OSError('the IPAM system is gone')\n\n"
        '    """',
    ),
    "takes the ranges from another place": _controller(
        "skiff_ip_pool",
        "    To read the ranges",
        '    """\n\n    def reconcile_normal(self, pool):\n'
        "        from capsmith_runtime.ipam import IPPoolState\n"
        "        return IPPoolState(addresses=['10.77.0.0/30'], prefix=24)\n\n"
        '    """',
    ),
    "has no addresses": _controller(
        "skiff_ip_pool",
        "    To read the ranges",
        '    """\n\n    def reconcile_normal(self, pool):\n'
        "        from capsmith_runtime.ipam import IPPoolState\n"
        "        return IPPoolState(addresses=[], prefix=24)\n\n"
        '    """',
    ),
}

_INITIALISER = "    def __init__(self, cloud: SimulatedCloud | None = None) -> None:"
_SESSIONS = (
    "    from capsmith_runtime.controlplane import SessionFactory\n\n"
    "    class Clients(SessionFactory[str]):\n"
    "        def open(self, credentials):\n"
    "            return credentials.identity\n\n"
    "    session_factory = Clients\n\n"
)
_IPAM_INITIALISER = "    def __init__(self, ipam: SimulatedIpam | None = None) -> None:"
_MANAGED_CREATES = "hosted = self._hosted.find(control_plane.external_id)"
_MANAGED: Final = {
    "does not wait for the infrastructure": _controller(
        "lagoon_control_plane",
        "if not control_plane.cluster.infrastructure_provisioned:",
        "if False:",
    ),
    "creates another control plane at each call": _controller(
        "lagoon_control_plane",
        _MANAGED_CREATES,
        "hosted = self._hosted.create(str(uuid.uuid4()), 'x', control_plane.version)",
    ),
    "never upgrades": _controller(
        "lagoon_control_plane", "if hosted.version != control_plane.version:", "if False:"
    ),
    "supplies no endpoint": _controller(
        "lagoon_control_plane",
        "control_plane.control_plane_endpoint or self._hosted.endpoint()",
        "None",
    ),
    "returns a kubeconfig without a server": _controller(
        "lagoon_control_plane", "self._hosted.kubeconfig(hosted)", "'kind: Config'"
    ),
    "never renews the credentials": _controller(
        "lagoon_control_plane",
        "self._hosted.kubeconfig(hosted)",
        "self.__dict__.setdefault('_first', self._hosted.kubeconfig(hosted))",
    ),
    "deletes without a session": _controller(
        "lagoon_control_plane", _INITIALISER, _SESSIONS + _INITIALISER
    ),
    "releases without a session": _controller(
        "lagoon_prefix", _IPAM_INITIALISER, _SESSIONS + _IPAM_INITIALISER
    ),
    "forgets to delete the control plane": _controller(
        "lagoon_control_plane", "self._hosted.delete(control_plane.external_id)", "pass"
    ),
}

_RESOURCES: Final = {
    "creates a network at each call": _controller(
        "acme_network",
        "self._cloud.create_resource(resource.external_id, resource.name)",
        "self._cloud.create_resource(f'{resource.external_id}-{uuid.uuid4()}', resource.name)",
    ),
    "creates before it looks": _controller(
        "acme_network",
        "found = self._cloud.find_resource(resource.external_id)",
        "found = self._cloud.create_resource(str(uuid.uuid4()), 'x')",
    ),
    "identifies networks by the owners, which a network need not have": _controller(
        "acme_network",
        "self._cloud.find_resource(resource.external_id)",
        "self._cloud.find_resource(resource.owners[0].uid)",
    ),
    "identifies networks by a uid that a move changes": _controller(
        "acme_network", "resource.external_id", "resource.metadata.uid"
    ),
    "needs the Cluster": _controller(
        "acme_network",
        "return ResourceState()",
        "return ResourceState(message=resource.cluster.name)",
    ),
    "needs the Cluster to delete": _controller(
        "acme_network",
        "if self._cloud.delete_resource(resource.external_id):",
        "if resource.cluster.name and self._cloud.delete_resource(resource.external_id):",
    ),
    "forgets to delete the network": _controller(
        "acme_network", "self._cloud.delete_resource(resource.external_id)", "None"
    ),
    "returns nothing": _controller("acme_network", "return ResourceState()", "return None"),
}

_EXTENSION: Final = {
    "holds with another message at each call": Mistake(
        "src/*/extension.py",
        "        annotation = f",
        "        return RetryAfter(WAIT_SECONDS, str(uuid.uuid4()))\n        annotation = f",
    ),
    "renames the port of the server": Mistake(
        "runtime-extension/config/webhook/service.yaml",
        "targetPort: webhook-server",
        "targetPort: hooks",
    ),
    "allows the manager to change every registration": Mistake(
        "runtime-extension/config/rbac/role.yaml",
        "  resourceNames:\n  - beacon\n",
        "  resourceNames: []\n",
    ),
    "has the certificate issued for another Service": Mistake(
        "runtime-extension/config/certmanager/certificate.yaml",
        "-system-webhook.",
        "-system-hooks.",
    ),
}

_WEBHOOK = "src/*/webhooks/acme_machine.py"
_ADMISSION: Final = {
    "refuses the provider's own template": Mistake(
        _WEBHOOK,
        "        return ()\n",
        "        from capsmith_runtime.admission import FieldError\n\n"
        "        return (FieldError('size', 'must be one of small, large'),)\n",
    ),
    "refuses objects of a cluster that is not provisioned": Mistake(
        _WEBHOOK,
        "        return ()\n",
        "        from capsmith_runtime.admission import FieldError\n\n"
        "        if obj.cluster and not obj.cluster.infrastructure_provisioned:\n"
        "            return (FieldError('size', 'needs a network'),)\n"
        "        return ()\n",
    ),
    "needs the cluster of an object": Mistake(
        _WEBHOOK,
        "        return ()\n",
        "        from capsmith_runtime.admission import AdmissionWarning\n\n"
        "        return (AdmissionWarning(obj.cluster.name),)\n",
    ),
    "reads what provider.yaml does not declare": Mistake(
        _WEBHOOK,
        "        return ()\n",
        "        obj.client.get('v1', 'ConfigMap', 'sizes')\n        return ()\n",
    ),
    "defaults a field again that it has defaulted": Mistake(
        _WEBHOOK,
        "        return obj.spec\n",
        "        from dataclasses import replace\n\n"
        "        return replace(obj.spec, image=f'{obj.spec.image}-1')\n",
    ),
    "generates a default at each call": Mistake(
        _WEBHOOK,
        "        return obj.spec\n",
        "        from dataclasses import replace\n\n"
        "        return replace(obj.spec, image=uuid.uuid4().hex)\n",
    ),
}

_ADMISSION_DESCRIPTION = """\
capsmith: 1
name: acme
repository: https://github.com/acme/cluster-api-provider-acme
contracts: [v1beta2]
releases: {v0.1: v1beta2}
infrastructure:
  AcmeCluster: {implements: InfraCluster}
  AcmeMachine:
    implements: InfraMachine
    spec: {size: string!, image: string!}
    webhooks: {validation: true, defaulting: true}
"""
_RESOURCE_DESCRIPTION = """\
capsmith: 1
name: acme
repository: https://github.com/acme/cluster-api-provider-acme
contracts: [v1beta2]
releases: {v0.1: v1beta2}
infrastructure:
  AcmeCluster: {implements: InfraCluster}
  AcmeMachine: {implements: InfraMachine}
  AcmeNetwork: {implements: Resource, spec: {cidr: string!}}
"""
_REMEDIATION_DESCRIPTION = """\
capsmith: 1
name: acme
repository: https://github.com/acme/cluster-api-provider-acme
contracts: [v1beta2]
releases: {v0.1: v1beta2}
infrastructure:
  AcmeCluster: {implements: InfraCluster}
  AcmeMachine: {implements: InfraMachine}
  AcmeRemediation: {implements: Remediation, status: {restarted: boolean}}
"""
_RESTARTS: Final = (
    "        if self._cloud.restart_server(server, remediation.external_id):\n"
    '            remediation.logger.info("restarted the server", server=server)\n'
    "        return RemediationState()\n"
)
_REMEDIATIONS: Final = {
    "restarts the server at each call": _controller(
        "acme_remediation",
        "restart_server(server, remediation.external_id)",
        "restart_server(server, str(uuid.uuid4()))",
    ),
    "restarts the server once in its life": _controller(
        "acme_remediation",
        "restart_server(server, remediation.external_id)",
        "restart_server(server, remediation.machine.uid)",
    ),
    "remembers the restart in the status only": _controller(
        "acme_remediation",
        _RESTARTS,
        "        from .._generated.api.acme_remediation import AcmeRemediationStatus\n\n"
        "        if not remediation.status(AcmeRemediationStatus).restarted:\n"
        "            self._cloud.restart_server(server, str(uuid.uuid4()))\n"
        "        return RemediationState(status=AcmeRemediationStatus(restarted=True))\n",
    ),
    "reports a progress that changes at each call": _controller(
        "acme_remediation",
        "return RemediationState()",
        "return RemediationState(message=uuid.uuid4().hex)",
    ),
    "needs the machine to delete": _controller(
        "acme_remediation",
        "        return Deleted()",
        "        assert remediation.infra_machine is not None\n        return Deleted()",
    ),
    "never lets the object go": _controller(
        "acme_remediation", "        return Deleted()", '        return Waiting("Restarting")'
    ),
}

_IDENTITIES_DESCRIPTION: Final = """\
capsmith: 1
name: acme
repository: https://github.com/acme/cluster-api-provider-acme
contracts: [v1beta2]
releases: {v0.1: v1beta2}
infrastructure:
  AcmeCluster: {implements: InfraCluster}
  AcmeMachine: {implements: InfraMachine, features: {credentials: true}}
  AcmeMachinePool: {implements: InfraMachinePool, features: {credentials: true}}
  AcmeNodePool:
    implements: InfraMachinePool
    features: {machines: true, credentials: true}
    machineKind: AcmeMachine
credentials:
- AcmeIdentity
- {kind: AcmeRole, secret: false, sources: [AcmeIdentity]}
"""
_CLIENTS: Final = """\
    from capsmith_runtime.infrastructure import SessionFactory

    class Clients(SessionFactory[str]):
        def open(self, credentials):
            return {result}

    session_factory = Clients

"""
_WATCHING: Final = _CLIENTS.format(result="credentials.identity").replace(
    "    session_factory = Clients\n",
    "        def watch(self, session, changes):\n"
    "            {watch}\n\n"
    "    session_factory = Clients\n",
)
_NORMAL_CLUSTER: Final = (
    "    def reconcile_normal(\n"
    "        self, cluster: InfraClusterScope[AcmeClusterSpec]\n"
    "    ) -> InfraClusterState | Waiting:\n"
    '        """Look up the resources, create them if they are missing, '
    'and return their state."""\n'
)
_LISTING: Final = (
    "    from capsmith_runtime.infrastructure import WatchedMachines\n\n"
    "    watched_machines = WatchedMachines.ALL\n\n"
    f"{_NORMAL_CLUSTER}"
    "        members = [each for each in cluster.machines if {condition}]\n"
    "        addresses = [each.addresses[0].address for each in members]\n"
    "        cluster.logger.info('members', addresses=addresses)\n"
)
_WATCHES: Final = {
    "expects an address of each machine": _controller(
        "acme_cluster", _NORMAL_CLUSTER, _LISTING.replace("{condition}", "True")
    ),
    "watches the infrastructure once": _controller(
        "acme_machine", _INITIALISER, _WATCHING.format(watch="changes.wait(0)") + _INITIALISER
    ),
    "watches the infrastructure after the end of the session": _controller(
        "acme_machine",
        _INITIALISER,
        _WATCHING.format(watch="__import__('threading').Event().wait(60)") + _INITIALISER,
    ),
}
_RIGHT_WATCHES: Final = (
    _controller(
        "acme_cluster",
        _NORMAL_CLUSTER,
        _LISTING.replace("{condition}", "each.is_provisioned and not each.deleting"),
    ),
    _controller(
        "acme_machine",
        _INITIALISER,
        _WATCHING.format(watch="while not changes.wait(1): pass") + _INITIALISER,
    ),
)
_OPENS = "        return SimulatedCloud(account="
_FIRST_CLIENT = "self.__dict__.setdefault('_first', {client})"
_IDENTITIES: Final = {
    "deletes servers without a session": _controller(
        "acme_machine",
        "        cloud = machine.session(CloudSessions)\n",
        "        cloud = self._cloud = machine.session(CloudSessions)\n",
        ("if machine.session(CloudSessions).delete", "if self._cloud.delete"),
    ),
    "deletes pools without a session": _controller(
        "acme_machine_pool",
        "        groups = pool.session(GroupSessions)\n",
        "        groups = self._groups = pool.session(GroupSessions)\n",
        ("if pool.session(GroupSessions).delete", "if self._groups.delete"),
    ),
    "creates all servers with the first session": _controller(
        "acme_machine",
        "cloud = machine.session(CloudSessions)",
        f"cloud = {_FIRST_CLIENT.format(client='machine.session(CloudSessions)')}",
    ),
    "creates all pools with the first session": _controller(
        "acme_machine_pool",
        "groups = pool.session(GroupSessions)",
        f"groups = {_FIRST_CLIENT.format(client='pool.session(GroupSessions)')}",
    ),
    "opens sessions with the Secret of the identity itself only": Mistake(
        "src/*/cloud.py", _OPENS, f"        assert credentials['token']\n{_OPENS}"
    ),
}
_RIGHT_SESSIONS: Final = (
    Mistake(
        "src/*/cloud.py",
        _OPENS,
        f"        assert (credentials.source or credentials)['token']\n{_OPENS}",
    ),
)

_MANAGER_DESCRIPTION: Final = _example("acme").replace(
    "infrastructure:\n",
    "manager:\n"
    "  featureGates: {FastBoot: {description: Start servers from snapshots.}}\n"
    "  healthChecks: true\n"
    "infrastructure:\n",
)
_MANAGER: Final = {
    "creates a server at each start if a feature gate is on": _controller(
        "acme_machine",
        "    def __init__(self, cloud: SimulatedCloud | None = None) -> None:\n"
        "        self._cloud = cloud or SimulatedCloud()\n",
        "    from .._generated.manager import FAST_BOOT\n\n"
        "    def __init__(self, cloud: SimulatedCloud | None = None) -> None:\n"
        "        self._cloud = cloud or SimulatedCloud()\n"
        "        if self.FAST_BOOT.is_enabled:\n"
        "            self._cloud.create_server(str(uuid.uuid4()), 'x', 'y', None)\n",
    ),
    "restarts the manager in an outage of the cloud": Mistake(
        "src/*/health_checks.py",
        "    def readyz(self) -> None:",
        "        from .cloud import SimulatedCloud\n\n"
        '        SimulatedCloud().find_server("x")\n\n'
        "    def readyz(self) -> None:",
    ),
    "is not alive before its first event": Mistake(
        "src/*/health_checks.py",
        "    def readyz(self) -> None:",
        '        if not hasattr(self, "first_event"):\n'
        '            raise RuntimeError("no event yet")\n\n'
        "    def readyz(self) -> None:",
    ),
}

_VIRTUAL_DESCRIPTION: Final = """\
capsmith: 1
name: atoll
repository: https://github.com/atoll/cluster-api-provider-atoll
contracts: [v1beta2]
releases: {v0.1: v1beta2}
machines: false
infrastructure:
  AtollCluster:
    implements: InfraCluster
"""
_VIRTUAL: Final = {
    "creates a cluster at each call": _controller(
        "atoll_cluster",
        "self._cloud.create_cluster(cluster.external_id,",
        "self._cloud.create_cluster(str(uuid.uuid4()),",
    ),
    "forgets to delete a cluster": _controller(
        "atoll_cluster", "self._cloud.delete_cluster(cluster.external_id)", "None"
    ),
    "raises in a cluster": _controller(
        "atoll_cluster", "network = self._cloud", "raise OSError; network = self._cloud"
    ),
}

_LAMP = "beacon_lamp"
_APPLIES = "        workload.apply(\n"
_DELETES = "workload.delete(CONFIG_MAP, addon.name, NAMESPACE)"
_NORMAL_LAMP = "    def reconcile_normal(\n"
_TRIES = (
    "    def _try(self, call, *arguments):\n"
    "        try:\n"
    "            return call(*arguments)\n"
    "        except Exception:\n"
    "            return None\n\n"
)
_LOCKS = (
    "    _lock = __import__('threading').Lock()\n\n"
    "    def _locked(self, call, *arguments):\n"
    "        with self._lock:\n"
    "            return call(*arguments)\n\n"
)
_ADDONS: Final = {
    "returns nothing": _controller(_LAMP, "return AddonState()", "return None"),
    "writes something else at each call": _controller(
        _LAMP,
        '"spec": json.dumps(',
        "'call': str(uuid.uuid4()),\n                    \"spec\": json.dumps(",
    ),
    "reports another message at each call": _controller(
        _LAMP, "return AddonState()", "return AddonState(message=str(uuid.uuid4()))"
    ),
    "never changes what is installed": _controller(
        _LAMP,
        _APPLIES,
        "        if workload.find(CONFIG_MAP, addon.name, NAMESPACE):\n"
        f"            return AddonState()\n{_APPLIES}",
    ),
    "forgets to remove what is installed": _controller(_LAMP, _DELETES, "False"),
    "remembers in memory where it is installed": _controller(
        _LAMP,
        _APPLIES,
        f"        self.__dict__.setdefault('_on', set()).add(cluster.name)\n{_APPLIES}",
        (_DELETES, f"cluster.name in self.__dict__.get('_on', ()) and {_DELETES}"),
    ),
    "does not wait until its objects are gone": _controller(
        _LAMP,
        'return Waiting("Removing", "the ConfigMap is being deleted", requeue_after=1)',
        "return Deleted()",
    ),
    "gives all add-ons one name": _controller(_LAMP, "addon.name", "'lamp'"),
    "gives what it installs another name after a restart": _controller(
        _LAMP,
        "addon.name",
        "f\"{addon.name}-{self.__dict__.setdefault('_id', uuid.uuid4())}\"",
    ),
    "hides the failures of installations": _controller(
        _LAMP,
        _APPLIES,
        "        self._try(\n            workload.apply,\n",
        (_NORMAL_LAMP, _TRIES + _NORMAL_LAMP),
    ),
    "hides the failures of removals": _controller(
        _LAMP,
        _DELETES,
        "self._try(workload.delete, CONFIG_MAP, addon.name, NAMESPACE)",
        (_NORMAL_LAMP, _TRIES + _NORMAL_LAMP),
    ),
    "forgets what it can remove only with a session": _controller(
        _LAMP,
        f"        if {_DELETES}:",
        "        try:\n"
        "            addon.session(Sessions)\n"
        "        except Exception:\n"
        "            return Deleted()\n"
        f"        if {_DELETES}:",
    ),
    "uses the session of the first add-on": _controller(
        _LAMP,
        "addon.session(Sessions),",
        "self.__dict__.get('_session')\n"
        "                    or self.__dict__.setdefault('_session', addon.session(Sessions)),",
    ),
    "serves one cluster at a time": _controller(
        _LAMP,
        _APPLIES,
        "        self._locked(\n            workload.apply,\n",
        (_NORMAL_LAMP, _LOCKS + _NORMAL_LAMP),
    ),
}

_LOGIN: Final = """\
class Login:
    ended = 0
    is_refused = False

    def __init__(self) -> None:
        self._ended = Login.ended

    def check(self) -> str:
        if Login.is_refused or self._ended != Login.ended:
            raise PermissionError("401 Unauthorized")
        return "me"


"""
_CHECKS: Final = """\
    def _check(self, addon):
        try:
            return addon.session(Sessions).check()
        except PermissionError as error:
            raise SessionExpiredError("401 Unauthorized") from error

"""
_DOUBLE: Final = """\
    def end_sessions(self) -> None:
        Login.ended += 1

    def simulate(self, faults) -> None:
        Login.is_refused = faults.refuse > 0

"""
_WITH_LOGIN: Final = (
    _controller(
        _LAMP,
        "class Sessions(SessionFactory[str])",
        f"{_LOGIN}class Sessions(SessionFactory[Login])",
        ("    SessionFactory,\n", "    SessionExpiredError,\n    SessionFactory,\n"),
        ('-> str:\n        """Log in', '-> Login:\n        """Log in'),
        ("return credentials.identity", "return Login()"),
        ("addon.session(Sessions),", "self._check(addon),"),
        (_NORMAL_LAMP, _CHECKS + _NORMAL_LAMP),
    ),
    Mistake(
        "tests/addons.py",
        "    def installed(",
        f"{_DOUBLE}    def installed(",
        (
            (
                "\n\nclass Addons:",
                "\nfrom cluster_api_provider_beacon.controllers.beacon_lamp import Login\n\n\n"
                "class Addons:",
            ),
        ),
    ),
)
_EXPIRED: Final = 'raise SessionExpiredError("401 Unauthorized") from error'
_LOGINS: Final = {
    "does not report that a session has ended": _controller(_LAMP, _EXPIRED, "raise"),
    "installs without an account": _controller(_LAMP, _EXPIRED, "return 'nobody'"),
}

KITS: Final[Mapping[str, Kit]] = {
    "infrastructure": Kit(_example("acme"), _INFRASTRUCTURE, wait_seconds=20),
    "pools": Kit(_example("pools"), _POOLS, wait_seconds=5),
    "bootstrap": Kit(_example("bootstrap"), _BOOTSTRAP),
    "control-plane": Kit(_example("complete"), _CONTROL_PLANE),
    "addresses": Kit(_example("complete"), _ADDRESSES),
    "managed": Kit(_example("managed"), _MANAGED),
    "remediations": Kit(_REMEDIATION_DESCRIPTION, _REMEDIATIONS),
    "resources": Kit(_RESOURCE_DESCRIPTION, _RESOURCES),
    "extension": Kit(_example("extension"), _EXTENSION),
    "addons": Kit(_example("extension"), _ADDONS, wait_seconds=5),
    "logins": Kit(_example("extension"), _LOGINS, authored=_WITH_LOGIN, wait_seconds=20),
    "admission": Kit(_ADMISSION_DESCRIPTION, _ADMISSION),
    "identities": Kit(_IDENTITIES_DESCRIPTION, _IDENTITIES, right=_RIGHT_SESSIONS),
    "watches": Kit(_example("acme"), _WATCHES, right=_RIGHT_WATCHES),
    "manager": Kit(_MANAGER_DESCRIPTION, _MANAGER),
    "virtual": Kit(_VIRTUAL_DESCRIPTION, _VIRTUAL, wait_seconds=5),
}


def find_file(repository: Path, mistake: Mistake) -> Path:
    """Return the file of a repository that a mistake is planted in."""
    (found,) = repository.glob(mistake.path)
    return found
