"""Mistakes in sessions with the infrastructure, and in watches of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.functional.mistakes.base import INITIALISER, Kit, Mistake, edit_controller, read_example

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
    "expects an address of each machine": edit_controller(
        "acme_cluster", _NORMAL_CLUSTER, _LISTING.replace("{condition}", "True")
    ),
    "watches the infrastructure once": edit_controller(
        "acme_machine", INITIALISER, _WATCHING.format(watch="changes.wait(0)") + INITIALISER
    ),
    "watches the infrastructure after the end of the session": edit_controller(
        "acme_machine",
        INITIALISER,
        _WATCHING.format(watch="__import__('threading').Event().wait(60)") + INITIALISER,
    ),
}
_RIGHT_WATCHES: Final = (
    edit_controller(
        "acme_cluster",
        _NORMAL_CLUSTER,
        _LISTING.replace("{condition}", "each.is_provisioned and not each.deleting"),
    ),
    edit_controller(
        "acme_machine",
        INITIALISER,
        _WATCHING.format(watch="while not changes.wait(1): pass") + INITIALISER,
    ),
)
_OPENS = "        return SimulatedCloud(account="
_FIRST_CLIENT = "self.__dict__.setdefault('_first', {client})"
_IDENTITIES: Final = {
    "deletes servers without a session": edit_controller(
        "acme_machine",
        "        cloud = machine.session(CloudSessions)\n",
        "        cloud = self._cloud = machine.session(CloudSessions)\n",
        ("if machine.session(CloudSessions).delete", "if self._cloud.delete"),
    ),
    "deletes pools without a session": edit_controller(
        "acme_machine_pool",
        "        groups = pool.session(GroupSessions)\n",
        "        groups = self._groups = pool.session(GroupSessions)\n",
        ("if pool.session(GroupSessions).delete", "if self._groups.delete"),
    ),
    "creates all servers with the first session": edit_controller(
        "acme_machine",
        "cloud = machine.session(CloudSessions)",
        f"cloud = {_FIRST_CLIENT.format(client='machine.session(CloudSessions)')}",
    ),
    "creates all pools with the first session": edit_controller(
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
KITS: Final[Mapping[str, Kit]] = {
    "identities": Kit(_IDENTITIES_DESCRIPTION, _IDENTITIES, right=_RIGHT_SESSIONS),
    "watches": Kit(read_example("acme"), _WATCHES, right=_RIGHT_WATCHES),
}
