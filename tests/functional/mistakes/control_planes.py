"""Mistakes in reconcilers of bootstrap configurations and control planes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.functional.mistakes.base import INITIALISER, Kit, Mistake, edit_controller, read_example

_RBAC: Final = 'rbac: [{apiGroups: [""], resources: [secrets], verbs: [get, create]}]\n'
_BOOTSTRAP: Final = {
    "logs the key of the CA": edit_controller(
        "kindle_config",
        "action = ",
        'config.logger.info("certificate", key=ca.private_key)\n        action = ',
    ),
    "creates a Secret without an owner": edit_controller(
        "kindle_config",
        'ca = config.certificate("ca")',
        'ca = config.certificate("ca")\n'
        '        name = f"{config.cluster.name}-token"\n'
        '        if config.client.get("v1", "Secret", name) is None:\n'
        '            secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}}\n'
        "            config.client.create(secret)",
    ),
    "hands the key of the CA to workers": edit_controller(
        "kindle_config", "if config.is_control_plane:", "if files:"
    ),
    "returns a cloud-config with a repeated key": edit_controller(
        "kindle_config",
        "return BootstrapDocument(document,",
        "return BootstrapDocument(document + document,",
    ),
    "returns nothing": edit_controller(
        "kindle_config", "return BootstrapDocument(document,", "return None and BootstrapDocument("
    ),
    "knows no pools": edit_controller(
        "kindle_config", "_token(config.name,", "_token(config.machine.name,"
    ),
    "requests certificates that do not exist": edit_controller(
        "kindle_config", '.certificate("ca")', '.certificate("front")'
    ),
    "keeps its own state of who is the first": edit_controller(
        "kindle_config",
        'ca = config.certificate("ca")',
        'ca = config.certificate("ca")\n'
        "        if config.is_first_control_plane and getattr(type(self), '_did', False):\n"
        "            return Waiting('Initialized', 'once is enough')\n"
        "        type(self)._did = config.is_first_control_plane",
    ),
    "renews the data once": edit_controller(
        "kindle_config",
        "        return self.bootstrap_data(config)\n",
        "        found = self.bootstrap_data(config)\n"
        "        return BootstrapDocument(found.value, found.format)\n",
    ),
    "never renews the data of a pool": edit_controller(
        "kindle_config",
        "refresh_after=TOKEN_SECONDS / 2",
        "refresh_after=TOKEN_SECONDS / 2 if config.machine else None",
    ),
    "creates a mirror when its kind is loaded": edit_controller(
        "kindle_mirror",
        "self._cloud = cloud or SimulatedCloud()",
        "self._cloud = cloud or SimulatedCloud()\n"
        "        self._cloud.create_resource('mirror', 'mirror')",
    ),
    "forgets to delete a mirror": edit_controller(
        "kindle_mirror", "self._cloud.delete_resource(resource.external_id)", "None"
    ),
}
_CONTROL_PLANE: Final = {
    "is initialized from the beginning": edit_controller(
        "skiff_control_plane",
        "    def health(",
        "    def is_initialized(self, control_plane):\n        return True\n\n    def health(",
    ),
    "expects each Machine to have a Node": edit_controller(
        "skiff_control_plane",
        "return ControlPlaneHealth()",
        "assert all(machine.node_name for machine in control_plane.machines)\n"
        "        return ControlPlaneHealth()",
    ),
    "fails without a Node": edit_controller(
        "skiff_control_plane",
        "return ControlPlaneHealth()",
        "for name in filter(None, (each.node_name for each in control_plane.machines)):\n"
        "            assert control_plane.workload_client.get('v1', 'Node', name)\n"
        "        return ControlPlaneHealth()",
    ),
    "blocks the event loop": edit_controller(
        "skiff_control_plane",
        "    def after_add(",
        "    async def after_add(",
        (
            'member.control_plane.logger.info("joined"',
            '__import__("time").sleep(0.01)\n        member.control_plane.logger.info("joined"',
        ),
    ),
    "is never healthy": edit_controller(
        "skiff_control_plane",
        "return ControlPlaneHealth()",
        'return Waiting("Unhealthy", "wait", requeue_after=5)',
    ),
    "reports another problem at each call": edit_controller(
        "skiff_control_plane",
        "return ControlPlaneHealth()",
        "return ControlPlaneHealth(\n"
        "            unhealthy={m.name: str(uuid.uuid4()) for m in control_plane.machines[:1]}\n"
        "        )",
    ),
    "waits for each new member forever": edit_controller(
        "skiff_control_plane",
        'member.control_plane.logger.info("joined", machine=member.machine.name)\n'
        "        return None",
        'return Waiting("Joining", "wait", requeue_after=5)',
    ),
    "never lets a member go": edit_controller(
        "skiff_control_plane",
        'member.control_plane.logger.info("leaves", machine=member.machine.name)\n'
        "        return None",
        'return Waiting("Leaving", "wait", requeue_after=5)',
    ),
}
_MEMBERS_DOUBLE: Final = """\
from capsmith_runtime.controlplane import NamespacedName
from capsmith_runtime.testing.adjustments import use_members_double


class Members:
    def __init__(self, folder):
        self._members, self._gone = set(), set()

    def start(self, monkeypatch):
        pass

    def act(self, cluster):
        for node in cluster.all("Node"):
            name, notes = node["metadata"]["name"], node["metadata"].get("annotations", {})
            if notes.get("leave") == "requested":
                self._members.discard(name)
                self._gone.add(name)
                body = {"metadata": {"annotations": {"leave": "done"}}}
                cluster.change("Node", NamespacedName("", name), body)
            elif name not in self._gone:
                self._members.add(name)

    def members(self):
        return sorted(self._members)


use_members_double(Members)
failed = set()
"""
_LEAVES: Final = """\
client, name = member.control_plane.workload_client, member.machine.node_name
        node = client.get("v1", "Node", name) if name else None
        leave = node["metadata"].get("annotations", {}).get("leave") if node else "done"
        if leave is None:
            client.patch("v1", "Node", name, {"metadata": {"annotations": {"leave": "requested"}}})
        if leave != "done":
            return Waiting("Leaving", "the member leaves", requeue_after=2)
        return None"""
_LEAVES_AUTHORED: Final = (
    edit_controller(
        "skiff_control_plane",
        'member.control_plane.logger.info("leaves", machine=member.machine.name)\n'
        "        return None",
        _LEAVES,
    ),
    Mistake("tests/conftest.py", "failed = set()\n", _MEMBERS_DOUBLE),
)
_MEMBERS: Final = {
    "forgets that members leave": edit_controller(
        "skiff_control_plane", "        if leave is None:", "        return None\n        if False:"
    ),
    "does not wait until a member has left": edit_controller(
        "skiff_control_plane",
        'return Waiting("Leaving", "the member leaves", requeue_after=2)',
        "return None",
    ),
    "lets the first member leave": edit_controller(
        "skiff_control_plane",
        "member.machine.node_name",
        "member.control_plane.machines[0].node_name",
    ),
}
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
    "finds addresses by the name of the claim": edit_controller(
        "lagoon_prefix", "claim.external_id", "claim.name"
    ),
    "needs the pool to release an address": edit_controller(
        "lagoon_prefix",
        "self._ipam.release(claim.external_id)",
        "assert claim.raw_pool_spec\n        self._ipam.release(claim.external_id)",
    ),
    "gives up when no address is free": edit_controller(
        "lagoon_prefix",
        "return exhausted()",
        "from capsmith_runtime.ipam import TerminalError\n\n"
        "            raise TerminalError('NoAddress', 'none is left')",
    ),
    "finds control planes by name": edit_controller(
        "lagoon_control_plane", "control_plane.external_id", "control_plane.name"
    ),
    "takes a failed deletion for a deletion": edit_controller(
        "lagoon_control_plane",
        "        if self._hosted.find(control_plane.external_id) is not None:\n"
        "            self._hosted.delete(control_plane.external_id)\n"
        '            control_plane.logger.info("deleted")\n',
        "        try:\n"
        "            self._hosted.delete(control_plane.external_id)\n"
        "        except Exception:\n"
        "            pass\n",
    ),
    "does not wait for the infrastructure": edit_controller(
        "lagoon_control_plane",
        "if not control_plane.cluster.infrastructure_provisioned:",
        "if False:",
    ),
    "creates another control plane at each call": edit_controller(
        "lagoon_control_plane",
        _MANAGED_CREATES,
        "hosted = self._hosted.create(str(uuid.uuid4()), 'x', control_plane.version)",
    ),
    "never upgrades": edit_controller(
        "lagoon_control_plane", "if hosted.version != control_plane.version:", "if False:"
    ),
    "supplies no endpoint": edit_controller(
        "lagoon_control_plane",
        "control_plane.control_plane_endpoint or self._hosted.endpoint()",
        "None",
    ),
    "returns a kubeconfig without a server": edit_controller(
        "lagoon_control_plane", "self._hosted.kubeconfig(hosted)", "'kind: Config'"
    ),
    "never renews the credentials": edit_controller(
        "lagoon_control_plane",
        "self._hosted.kubeconfig(hosted)",
        "self.__dict__.setdefault('_first', self._hosted.kubeconfig(hosted))",
    ),
    "deletes without a session": edit_controller(
        "lagoon_control_plane", INITIALISER, _SESSIONS + INITIALISER
    ),
    "releases without a session": edit_controller(
        "lagoon_prefix", _IPAM_INITIALISER, _SESSIONS + _IPAM_INITIALISER
    ),
    "allocates without a search": edit_controller(
        "lagoon_prefix", "self._ipam.find(claim.external_id) or ", ""
    ),
    "takes a failed search for an empty one": edit_controller(
        "lagoon_prefix",
        "address = self._ipam.find(claim.external_id) or ",
        "try:\n"
        "            found = self._ipam.find(claim.external_id)\n"
        "        except Exception:\n"
        "            found = None\n"
        "        address = found or ",
    ),
    "never releases an address": edit_controller(
        "lagoon_prefix", "self._ipam.release(claim.external_id)", "pass"
    ),
    "releases recorded addresses only": edit_controller(
        "lagoon_prefix",
        "self._ipam.release(claim.external_id)",
        "if claim.address is not None:\n            self._ipam.release(claim.external_id)",
    ),
    "takes a failed release for a release": edit_controller(
        "lagoon_prefix",
        "self._ipam.release(claim.external_id)",
        "try:\n"
        "            self._ipam.release(claim.external_id)\n"
        "        except Exception:\n"
        "            pass",
    ),
    "hides that an allocation fails": edit_controller(
        "lagoon_prefix",
        "address = self._ipam.find(claim.external_id) or self._ipam.allocate(claim.external_id)",
        "address = '198.51.100.9'\n"
        "        try:\n"
        "            address = self._ipam.find(claim.external_id) or self._ipam.allocate(\n"
        "                claim.external_id\n"
        "            )\n"
        "        except Exception:\n"
        "            claim.logger.info('failed')",
    ),
    "deletes recorded control planes only": edit_controller(
        "lagoon_control_plane",
        "if self._hosted.find(control_plane.external_id) is not None:",
        "if control_plane.control_plane_endpoint is not None:",
    ),
    "reports the version before it runs": edit_controller(
        "lagoon_control_plane",
        "if hosted.version != control_plane.version:",
        "calls = self.__dict__.setdefault('_calls', [])\n"
        "        calls.append(control_plane.version)\n"
        "        if hosted.version != control_plane.version and calls[-2] == calls[-1]:",
        ("            version=hosted.version", "            version=control_plane.version"),
        ("kubeconfig=self", "requeue_after=1,\n            kubeconfig=self"),
    ),
    "returns another kubeconfig at each call": edit_controller(
        "lagoon_control_plane",
        "self._hosted.kubeconfig(hosted)",
        "type(self._hosted.kubeconfig(hosted))(token=str(uuid.uuid4()))",
    ),
    "forgets to delete the control plane": edit_controller(
        "lagoon_control_plane", "self._hosted.delete(control_plane.external_id)", "pass"
    ),
}
KITS: Final[Mapping[str, Kit]] = {
    "bootstrap": Kit(read_example("bootstrap") + _RBAC, _BOOTSTRAP),
    "control-plane": Kit(read_example("complete"), _CONTROL_PLANE),
    "members": Kit(read_example("complete"), _MEMBERS, authored=_LEAVES_AUTHORED),
    "managed": Kit(read_example("managed"), _MANAGED, wait_seconds=40),
}
