"""Mistakes in reconcilers of clusters and machines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.functional.mistakes.base import PLACES, Kit, Mistake, edit_controller, read_example

_REPORTS = "failure_domain=server.zone"
_FINDS = "server = self._cloud.find_server(machine.external_id)"


def _search(instead: str) -> Mistake:
    """Replace how a reconciler searches for the server of its machine."""
    rest = "\n        if server is None and machine.is_provisioned:"
    return edit_controller("acme_machine", _FINDS + rest, instead + rest)


_INFRASTRUCTURE: Final = {
    # It returns the right server: another provider id at each call would be one more mistake.
    "creates a server at each call": _search(
        f"self._cloud.create_server(str(uuid.uuid4()), 'x', 'y', None)\n        {_FINDS}"
    ),
    "creates before it looks, after a crash": edit_controller(
        "acme_machine",
        "if server is None and provider_id is None:",
        "if machine.provider_id is None:\n"
        "            server = self._cloud.create_server(str(uuid.uuid4()), 'x', 'y', None)\n"
        "        elif server is None:",
    ),
    "identifies servers by a uid that a move changes": edit_controller(
        "acme_machine",
        "machine.external_id",
        "machine.machine.uid if hasattr(machine, 'spec') and machine.machine else 'x'",
    ),
    "deletes the server that the provider id names": edit_controller(
        "acme_machine",
        "if self._cloud.delete_server(machine.external_id):",
        "for path in (self._cloud.folder / 'servers').iterdir():\n"
        "            if machine.provider_id and machine.provider_id in path.read_text():\n"
        "                path.unlink()\n"
        "        if self._cloud.delete_server(machine.external_id):",
    ),
    "has another account at each login": edit_controller(
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
    "creates a server again after it disappeared": edit_controller(
        "acme_machine",
        "if server is None and machine.is_provisioned:",
        "if server is None:\n"
        "            self._cloud.create_server(machine.external_id, 'x', 'y', None)\n"
        "        if server is None and machine.is_provisioned:",
    ),
    "changes the provider id": edit_controller(
        "acme_machine",
        "provider_id=server.provider_id",
        "provider_id=f'{server.provider_id}/{uuid.uuid4()}'",
    ),
    "creates servers in any failure domain": edit_controller(
        "acme_machine", PLACES, "            )"
    ),
    "creates servers in the last failure domain": edit_controller(
        "acme_machine", PLACES, "                self._cloud.zones[-1],\n            )"
    ),
    "creates servers in the failure domains in turn": edit_controller(
        "acme_machine",
        PLACES,
        "                self._cloud.zones[\n"
        "                    1 - len([*(self._cloud.folder / 'servers').iterdir()]) % 2\n"
        "                ],\n            )",
    ),
    # The status then has what the Machine requires, wherever the server is.
    "reports the failure domain that the Machine requires": edit_controller(
        "acme_machine",
        PLACES,
        "                self._cloud.zones[0],\n            )",
        (_REPORTS, "failure_domain=machine.failure_domain"),
    ),
    "reports another failure domain than that of the server": edit_controller(
        "acme_machine", _REPORTS, "failure_domain=self._cloud.zones[0]"
    ),
    "reports no failure domain": edit_controller("acme_machine", _REPORTS, "failure_domain=None"),
    "gives all machines one provider id": edit_controller(
        "acme_machine", "provider_id=server.provider_id", "provider_id='acme://one'"
    ),
    "reports other addresses at each call": edit_controller(
        "acme_machine", '"127.0.0.1"', "f'10.0.0.{uuid.uuid4().int % 250}'"
    ),
    "reports a progress that changes at each call": edit_controller(
        "acme_machine",
        "            failure_domain=server.zone,\n        )",
        "            failure_domain=server.zone,\n"
        "            requeue_after=0.5,\n"
        "            message=str(uuid.uuid4()),\n"
        "        )",
    ),
    "finds servers by the names of their machines": edit_controller(
        "acme_machine", "machine.external_id", "getattr(machine, 'name', 'm1')"
    ),
    "returns a provider id without a scheme": edit_controller(
        "acme_machine", "provider_id=server.provider_id", "provider_id=server.id"
    ),
    "returns a provider id with a value that is None": edit_controller(
        "acme_machine",
        "provider_id=server.provider_id",
        "provider_id=f'acme:///{machine.failure_domain}/{server.id}'",
    ),
    "creates servers without bootstrap data": edit_controller(
        "acme_machine",
        "machine.bootstrap_data().text if self._cloud.stores_user_data() else None",
        "machine.bootstrap_data().text[:13]",
    ),
    "logs the bootstrap data": edit_controller(
        "acme_machine", "server=created.id", "data=machine.bootstrap_data().text"
    ),
    "reports a name as an IP address": edit_controller(
        "acme_machine", 'Address("InternalIP", "127.0.0.1")', 'Address("InternalIP", server.name)'
    ),
    "reports no addresses": edit_controller(
        "acme_machine",
        'addresses=[Address("Hostname", server.name), Address("InternalIP", "127.0.0.1")]',
        "addresses=[]",
    ),
    "takes a refused request for a lasting error": _search(
        "from capsmith_runtime.fault_injection import RateLimited\n"
        "        from capsmith_runtime.infrastructure import TerminalError\n\n"
        "        try:\n"
        "            server = self._cloud.find_server(machine.external_id)\n"
        "        except RateLimited as error:\n"
        "            raise TerminalError('RateLimited', str(error)) from error"
    ),
    "repeats a refused request in the same call": _search(
        "import time\n"
        "        from capsmith_runtime.fault_injection import RateLimited\n\n"
        "        for last in (False, False, True):\n"
        "            try:\n"
        "                server = self._cloud.find_server(machine.external_id)\n"
        "                break\n"
        "            except RateLimited:\n"
        "                if last:\n"
        "                    raise\n"
        "                time.sleep(0.5)"
    ),
    "gives up when no capacity is left": edit_controller(
        "acme_machine",
        "            created = self._cloud.create_server(",
        "            from capsmith_runtime.infrastructure import TerminalError\n"
        "            from capsmith_runtime.fault_injection import NoCapacity\n\n"
        "            def create_server(*values):\n"
        "                try:\n"
        "                    return self._cloud.create_server(*values)\n"
        "                except NoCapacity as error:\n"
        "                    raise TerminalError('NoCapacity', str(error)) from error\n\n"
        "            created = create_server(",
    ),
    "reports a cluster for which nothing could be created": edit_controller(
        "acme_cluster",
        "            network = self._cloud.create_cluster(cluster.external_id, cluster.name)\n"
        '            cluster.logger.info("created", cluster=network.id)\n',
        "            from capsmith_runtime.fault_injection import NoCapacity\n\n"
        "            try:\n"
        "                self._cloud.create_cluster(cluster.external_id, cluster.name)\n"
        "            except NoCapacity:\n"
        "                pass\n",
    ),
    "takes refused credentials for a server that is gone": edit_controller(
        "acme_machine",
        "        if self._cloud.delete_server(machine.external_id):\n"
        '            machine.logger.info("deleted")\n',
        "        from capsmith_runtime.fault_injection import LoginRefused\n\n"
        "        try:\n"
        "            self._cloud.delete_server(machine.external_id)\n"
        "        except LoginRefused:\n"
        "            pass\n",
    ),
    "hides the failures of deletions of clusters": edit_controller(
        "acme_cluster",
        "        if self._cloud.delete_cluster(cluster.external_id):\n"
        '            cluster.logger.info("deleted")\n',
        "        try:\n"
        "            self._cloud.delete_cluster(cluster.external_id)\n"
        "        except Exception:\n"
        "            pass\n",
    ),
    "forgets to delete the server": edit_controller(
        "acme_machine", "self._cloud.delete_server(machine.external_id)", "None"
    ),
    "needs the Machine to delete": edit_controller(
        "acme_machine",
        "if self._cloud.delete_server(machine.external_id):",
        "if machine.machine.name and self._cloud.delete_server(machine.external_id):",
    ),
    "does not delete a server that is not listed yet": edit_controller(
        "acme_machine",
        "if self._cloud.delete_server(machine.external_id):",
        "if self._cloud.find_server(machine.external_id):\n"
        "            self._cloud.delete_server(machine.external_id)",
    ),
    "considers a server that is not listed yet as lost": edit_controller(
        "acme_machine", "machine.is_provisioned:", "machine.provider_id:"
    ),
    "hides the failures of deletions": edit_controller(
        "acme_machine",
        "        if self._cloud.delete_server(machine.external_id):\n"
        '            machine.logger.info("deleted")\n',
        "        try:\n"
        "            self._cloud.delete_server(machine.external_id)\n"
        "        except Exception:\n"
        "            pass\n",
    ),
    "returns no state for a machine": edit_controller(
        "acme_machine", "return InfraMachineState(", "return None and InfraMachineState("
    ),
    "raises in the machine": edit_controller(
        "acme_machine", "server = self._cloud", "raise OSError; server = self._cloud"
    ),
    "supplies no endpoint": edit_controller(
        "acme_cluster", "cluster.control_plane_endpoint or Endpoint(host, port)", "None"
    ),
    "forgets to delete what machines share": edit_controller(
        "acme_cluster", "self._cloud.delete_cluster(cluster.external_id)", "None"
    ),
    "creates another network at each call": edit_controller(
        "acme_cluster",
        "network = self._cloud.find_cluster(cluster.external_id)",
        "network = self._cloud.create_cluster(str(uuid.uuid4()), cluster.name)",
    ),
    "identifies networks by the Cluster": edit_controller(
        "acme_cluster",
        "cluster.external_id",
        "(cluster.cluster.uid if cluster.cluster else 'none')",
    ),
    "needs the Cluster to delete": edit_controller(
        "acme_cluster",
        "if self._cloud.delete_cluster(cluster.external_id):",
        "if cluster.cluster.name and self._cloud.delete_cluster(cluster.external_id):",
    ),
    "raises in the cluster": edit_controller(
        "acme_cluster", "network = self._cloud", "raise OSError; network = self._cloud"
    ),
    "misspells a field in a sample": Mistake(
        "config/samples/acme_identity.yaml", "secretRef:", "secretReference:"
    ),
    "misspells a field in a template": Mistake(
        "templates/cluster-template.yaml", "kind: AcmeMachineTemplate\n", "kind: AcmeTemplate\n"
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
    "creates a cluster at each call": edit_controller(
        "atoll_cluster",
        "self._cloud.create_cluster(cluster.external_id,",
        "self._cloud.create_cluster(str(uuid.uuid4()),",
    ),
    "forgets to delete a cluster": edit_controller(
        "atoll_cluster", "self._cloud.delete_cluster(cluster.external_id)", "None"
    ),
    "raises in a cluster": edit_controller(
        "atoll_cluster", "network = self._cloud", "raise OSError; network = self._cloud"
    ),
}
KITS: Final[Mapping[str, Kit]] = {
    "infrastructure": Kit(read_example("acme"), _INFRASTRUCTURE, wait_seconds=20),
    "virtual": Kit(_VIRTUAL_DESCRIPTION, _VIRTUAL, wait_seconds=5),
}
