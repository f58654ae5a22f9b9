"""Writes the conditions of Machines that tell how their remediation goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.constants import MACHINE_KIND
from capsmith_runtime.contract.core import Machine
from capsmith_runtime.contract.machine_conditions import (
    EXTERNALLY_REMEDIATED_CONDITION,
    build_machine_status,
    is_marked_unhealthy,
    request_owner_remediation,
)
from capsmith_runtime.contract.model import Condition
from capsmith_runtime.errors import NotFoundError
from capsmith_runtime.kube.client import KubeClient, NamespacedName
from capsmith_runtime.kube.patch import merge_patch
from capsmith_runtime.reconcile.kinds import core_type
from capsmith_runtime.reconcile.patcher import utc_now
from capsmith_runtime.reconcile.results import State
from capsmith_runtime.remediation.api import RemediationFailed

_REASON_COMPLETE: Final = "RemediationCompleted"
_REASON_IN_PROGRESS: Final = "RemediationInProgress"


class MachineConditions:
    """Writes ExternallyRemediated and OwnerRemediated of Machines.

    Core sets ExternallyRemediated when it has created a remediation, and leaves the rest to the
    remediation's controller. A Machine that failed its health check and whose OwnerRemediated is
    False is replaced by its owner.

    Nothing is written before core has recorded that the Machine is unhealthy, which it does after
    the creation. Otherwise core's write fails with a conflict and is never repeated, and the owner
    does not replace the Machine.
    """

    def __init__(self, client: KubeClient, core_version: str) -> None:
        self._client = client
        self._machines = core_type(core_version, MACHINE_KIND, "machines")

    async def show_state(self, machine: Machine, state: State) -> bool:
        """Show in the Machine whether its remediation is complete.

        Returns False if core has not recorded yet that the Machine is unhealthy.
        """
        default = _REASON_COMPLETE if state.ready else _REASON_IN_PROGRESS
        condition = _build_condition(state.ready, state.reason or default, state)
        return await self._write(machine, [condition], ())

    async def show_failure(self, machine: Machine, failed: RemediationFailed) -> bool:
        """Leave the Machine to its owner.

        Returns False if core has not recorded yet that the Machine is unhealthy.
        """
        text = f"{failed.reason}: {failed.message}" if failed.message else failed.reason
        conditions = [
            _build_condition(False, failed.reason, failed),
            request_owner_remediation(text),
        ]
        return await self._write(machine, conditions, ())

    async def remove(self, machine: Machine) -> None:
        """Remove the condition of a remediation that has ended."""
        await self._write(machine, (), (EXTERNALLY_REMEDIATED_CONDITION,))

    async def _write(
        self, machine: Machine, present: Sequence[Condition], absent: Sequence[str]
    ) -> bool:
        key = NamespacedName(machine.namespace, machine.name)
        try:
            # Read live, because the cache holds no other conditions, which the list must keep.
            obj = await self._client.get(self._machines, key)
            if metadata.uid(obj) != machine.uid:
                return True
            if present and not is_marked_unhealthy(obj):
                return False
            status = build_machine_status(obj, present, absent, utc_now())
            changed = merge_patch(dict(metadata.mapping(obj, "status")), status)
            if changed:
                version = obj["metadata"]["resourceVersion"]
                body = {"status": changed}
                await self._client.patch_status(self._machines, key, body, resource_version=version)
        except NotFoundError:
            pass
        return True


def _build_condition(status: bool, reason: str, source: State | RemediationFailed) -> Condition:
    return Condition(
        type=EXTERNALLY_REMEDIATED_CONDITION, status=status, reason=reason, message=source.message
    )
