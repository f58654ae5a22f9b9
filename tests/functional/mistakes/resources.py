"""Mistakes in reconcilers of addresses, resources and remediations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.functional.mistakes.base import Kit, edit_controller, read_example

_ADDRESSES: Final = {
    "derives pools from what another system allocates": edit_controller(
        "skiff_ip_pool",
        "    To read the ranges",
        '    """\n\n    def reconcile_normal(self, pool):\n'
        "        raise OSError('the IPAM system is gone')\n\n"
        '    """',
    ),
    "takes the ranges from another place": edit_controller(
        "skiff_ip_pool",
        "    To read the ranges",
        '    """\n\n    def reconcile_normal(self, pool):\n'
        "        from capsmith_runtime.ipam import IPPoolState\n"
        "        return IPPoolState(addresses=['10.77.0.0/30'], prefix=24)\n\n"
        '    """',
    ),
    "has no addresses": edit_controller(
        "skiff_ip_pool",
        "    To read the ranges",
        '    """\n\n    def reconcile_normal(self, pool):\n'
        "        from capsmith_runtime.ipam import IPPoolState\n"
        "        return IPPoolState(addresses=[], prefix=24)\n\n"
        '    """',
    ),
}
_RESOURCES: Final = {
    "creates a network at each call": edit_controller(
        "acme_network",
        "self._cloud.create_resource(resource.external_id, resource.name)",
        "self._cloud.create_resource(f'{resource.external_id}-{uuid.uuid4()}', resource.name)",
    ),
    "creates before it looks": edit_controller(
        "acme_network",
        "found = self._cloud.find_resource(resource.external_id)",
        "found = self._cloud.create_resource(str(uuid.uuid4()), 'x')",
    ),
    "identifies networks by the owners, which a network need not have": edit_controller(
        "acme_network",
        "self._cloud.find_resource(resource.external_id)",
        "self._cloud.find_resource(resource.owners[0].uid)",
    ),
    "identifies networks by a uid that a move changes": edit_controller(
        "acme_network", "resource.external_id", "resource.metadata.uid"
    ),
    "needs the Cluster": edit_controller(
        "acme_network",
        "return ResourceState()",
        "return ResourceState(message=resource.cluster.name)",
    ),
    "needs the Cluster to delete": edit_controller(
        "acme_network",
        "if self._cloud.delete_resource(resource.external_id):",
        "if resource.cluster.name and self._cloud.delete_resource(resource.external_id):",
    ),
    "forgets to delete the network": edit_controller(
        "acme_network", "self._cloud.delete_resource(resource.external_id)", "None"
    ),
    "returns nothing": edit_controller("acme_network", "return ResourceState()", "return None"),
}
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
    "restarts the server at each call": edit_controller(
        "acme_remediation",
        "restart_server(server, remediation.external_id)",
        "restart_server(server, str(uuid.uuid4()))",
    ),
    "restarts the server once in its life": edit_controller(
        "acme_remediation",
        "restart_server(server, remediation.external_id)",
        "restart_server(server, remediation.machine.uid)",
    ),
    "remembers the restart in the status only": edit_controller(
        "acme_remediation",
        _RESTARTS,
        "        from .._generated.api.acme_remediation import AcmeRemediationStatus\n\n"
        "        if not remediation.status(AcmeRemediationStatus).restarted:\n"
        "            self._cloud.restart_server(server, str(uuid.uuid4()))\n"
        "        return RemediationState(status=AcmeRemediationStatus(restarted=True))\n",
    ),
    "reports a progress that changes at each call": edit_controller(
        "acme_remediation",
        "return RemediationState()",
        "return RemediationState(message=uuid.uuid4().hex)",
    ),
    "needs the machine to delete": edit_controller(
        "acme_remediation",
        "        return Deleted()",
        "        assert remediation.infra_machine is not None\n        return Deleted()",
    ),
    "never lets the object go": edit_controller(
        "acme_remediation", "        return Deleted()", '        return Waiting("Restarting")'
    ),
}
KITS: Final[Mapping[str, Kit]] = {
    "addresses": Kit(read_example("complete"), _ADDRESSES),
    "remediations": Kit(_REMEDIATION_DESCRIPTION, _REMEDIATIONS),
    "resources": Kit(_RESOURCE_DESCRIPTION, _RESOURCES),
}
