"""Writes on a managed control plane object."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.constants import READY_CONDITION
from capsmith_runtime.contract.control_plane import (
    AVAILABLE,
    DELETING,
    ROLLING_OUT,
    ControlPlaneFacts,
    ControlPlaneShape,
)
from capsmith_runtime.contract.kubernetes_version import normalize
from capsmith_runtime.contract.model import Condition, Object
from capsmith_runtime.contract.status_writer import StatusWriter
from capsmith_runtime.controlplane.patcher import ControlPlanePatcher
from capsmith_runtime.kube.client import JSON, KubeClient
from capsmith_runtime.kube.informer import Informer

_REASONS = {"Ready": "Available", "NotReady": "NotAvailable"}


class ManagedControlPlanePatcher(ControlPlanePatcher):
    """Writes Available in place of Ready (CP-26), and always that there are no Nodes."""

    def __init__(
        self,
        client: KubeClient,
        informer: Informer,
        writer: StatusWriter,
        obj: JSON,
        shape: ControlPlaneShape,
        features: Set[str],
    ) -> None:
        super().__init__(client, informer, writer, obj)
        self._shape = shape
        self._features = features

    async def write_status(
        self, status: Object, present: Sequence[Condition], *, complete: bool = True
    ) -> None:
        """Write the changed fields of the status, including these conditions."""
        facts = ControlPlaneFacts(
            initialized=self._shape.initialized({"status": status}), externally_managed=True
        )
        full = self._shape.status({"status": status}, facts, self._features)
        conditions = (*(_available(each) for each in present), *self._progress(full))
        shown, absent = self._shape.conditions(conditions), self._shape.absent(conditions)
        await self.patch_status(full, shown, absent, complete=complete)

    def _progress(self, status: Object) -> Iterator[Condition]:
        """Yield the conditions of operations in progress."""
        deleting = metadata.is_deleting(self.obj)
        running = metadata.text(status, "version")
        desired = metadata.text(self.obj, "spec", "version")
        upgrading = bool(running and desired) and running != normalize(desired) and not deleting
        message = f"Upgrading from {running} to {normalize(desired)}" if upgrading else ""
        yield _in_progress(ROLLING_OUT, upgrading, message)
        yield _in_progress(DELETING, deleting, "")


def _available(condition: Condition) -> Condition:
    """Turn Ready into Available; an error of the manager leaves it unknown."""
    if condition.type != READY_CONDITION:
        return condition
    return Condition(
        type=AVAILABLE,
        status=None if condition.severity == "Error" else condition.status,
        reason=_REASONS.get(condition.reason, condition.reason),
        message=condition.message,
        severity=condition.severity,
    )


def _in_progress(condition_type: str, status: bool, message: str) -> Condition:
    return Condition(
        type=condition_type,
        status=status,
        reason=condition_type if status else f"Not{condition_type}",
        message=message,
        severity="Info",
    )
