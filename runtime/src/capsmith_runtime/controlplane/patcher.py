"""Writes to control planes, both managed ones and those that consist of Machines."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence, Set

from capsmith_runtime.contract import conditions, metadata
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
from capsmith_runtime.errors import NotFoundError
from capsmith_runtime.kube.client import JSON, KubeClient, key_of
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.reconcile.patcher import ObjectDeletedError, Patcher


class ControlPlanePatcher(Patcher):
    """A Patcher that can also write state annotations and remove conditions."""

    async def patch_annotations(
        self, annotations: Mapping[str, str | None], *, locked: bool = False
    ) -> None:
        """Set annotations, or remove those whose value is None; keep all other annotations.

        If ``locked`` is true, raises ConflictError if the object has changed since it was read.
        Raises ObjectDeletedError if the object no longer exists.
        """
        current = metadata.annotations(self.obj)
        # Only differences, in a merge patch, so that annotations of other writers are kept.
        changed = {name: text for name, text in annotations.items() if current.get(name) != text}
        if not changed:
            return
        version = self.obj["metadata"]["resourceVersion"] if locked else ""
        body = {"metadata": {"annotations": changed}}
        resource = self._informer.resource
        try:
            self.obj = await self._client.patch(
                resource, key_of(self.obj), body, resource_version=version
            )
        except NotFoundError:
            raise ObjectDeletedError from None
        self._informer.update_from_write(self.obj)

    async def patch_status(
        self,
        status: Object,
        present: Sequence[Condition],
        absent: Collection[str],
        *,
        complete: bool = True,
    ) -> None:
        """Write the changed fields of ``status`` and the conditions in ``present``.

        Conditions whose type is in ``absent`` are removed.  The observed generation is written only
        if ``complete`` is true (CRD-14).
        """
        full = self._writer.merge_conditions(self.obj, status, present, self._now())
        for name in absent:
            full["conditions"] = conditions.remove(full["conditions"], name)
        await self._write(status=self._with_generation(full) if complete else full)


_REASONS = {"Ready": "Available", "NotReady": "NotAvailable"}


class ManagedControlPlanePatcher(ControlPlanePatcher):
    """A Patcher for managed control planes: writes Available instead of Ready (CP-26).

    It always reports the control plane as externally managed, without Nodes (CP-25).
    """

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
        """Write the changed fields of the status, and the conditions in ``present``."""
        facts = ControlPlaneFacts(
            initialized=self._shape.is_initialized({"status": status}), externally_managed=True
        )
        full = self._shape.build_status({"status": status}, facts, self._features)
        conditions = (*(_available(each) for each in present), *self._progress(full))
        shown, absent = self._shape.select_conditions(
            conditions
        ), self._shape.find_obsolete_conditions(conditions)
        await self.patch_status(full, shown, absent, complete=complete)

    def _progress(self, status: Object) -> Iterator[Condition]:
        """Yield the conditions that describe operations in progress."""
        deleting = metadata.is_deleting(self.obj)
        running = metadata.text(status, "version")
        desired = metadata.text(self.obj, "spec", "version")
        upgrading = bool(running and desired) and running != normalize(desired) and not deleting
        message = f"Upgrading from {running} to {normalize(desired)}" if upgrading else ""
        yield _in_progress(ROLLING_OUT, upgrading, message)
        yield _in_progress(DELETING, deleting, "")


def _available(condition: Condition) -> Condition:
    """Convert Ready to Available; an error of the manager makes it Unknown."""
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
