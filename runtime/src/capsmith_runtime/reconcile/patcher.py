"""Patches an object during a single reconcile, and keeps its latest known state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from capsmith_runtime.contract import conditions, constants, external_id, metadata, records
from capsmith_runtime.contract.model import Condition, Object, Severity
from capsmith_runtime.contract.records import Record
from capsmith_runtime.contract.status_writer import ConditionWriter
from capsmith_runtime.errors import NotFoundError
from capsmith_runtime.kube.client import JSON, KubeClient
from capsmith_runtime.kube.hidden_values import redact
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.kube.patch import write
from capsmith_runtime.reconcile.kinds import Kind


def utc_now() -> str:
    """Return the current UTC time as a string in the format of conditions, RFC 3339."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class ObjectDeletedError(Exception):
    """Raised if the object no longer exists; not a failure, because nothing is left to write."""


class Patcher:
    """Writes only changed fields; ``obj`` is the object in the API server's latest response."""

    def __init__(
        self,
        client: KubeClient,
        informer: Informer,
        writer: ConditionWriter,
        obj: JSON,
        now: Callable[[], str] = utc_now,
        *,
        has_records: bool = False,
    ) -> None:
        """Initialise for one object; ``has_records`` is true if its kind has ``spec.recorded``."""
        self.obj = obj
        self._has_records = has_records
        self._client = client
        self._informer = informer
        self._writer = writer
        self._now = now
        self._dropped: frozenset[str] = frozenset()
        self._observed: int | None = None

    def track_generation(self) -> None:
        """Set ``observedGeneration`` in the status that each complete reconcile writes (CRD-14)."""
        self._observed = metadata.generation(self.obj)

    async def add_finalizer(
        self,
        kind: Kind[Any],
        labels: Mapping[str, str] | None = None,
        further: Mapping[Record, str] | None = None,
    ) -> None:
        """Add the finalizer and external id in one patch, before any side effect (SM-08, SM-09).

        ``further`` are records that the same patch writes.
        """
        changed = dict(self.obj["metadata"])
        if labels:
            changed["labels"] = {**metadata.labels(self.obj), **labels}
        finalizers = metadata.finalizers(self.obj)
        if kind.finalizer not in finalizers:
            changed["finalizers"] = [*finalizers, kind.finalizer]
        new: JSON = {**self.obj, "metadata": changed}
        for record, value in (further or {}).items():
            new = self._put(new, record, value)
        # An id is never replaced, because existing infrastructure is found by it.
        if external_id.stored(self.obj, kind.resource.group) is None:
            new = self._put(new, records.EXTERNAL_ID, external_id.create(self.obj))
        await self._write_main(new)

    async def protect(self, finalizer: str) -> None:
        """Add ``finalizer`` without an external id, for an object that has no infrastructure."""
        finalizers = [*metadata.finalizers(self.obj), finalizer]
        await self._write(metadata={**self.obj["metadata"], "finalizers": finalizers})

    async def annotate(self, name: str, value: str) -> None:
        """Set an annotation on the object."""
        annotations = {**metadata.annotations(self.obj), name: value}
        await self._write(metadata={**self.obj["metadata"], "annotations": annotations})

    async def record(self, record: Record, value: str) -> None:
        """Record a value that must survive ``clusterctl move``."""
        await self._write_main(self._put(self.obj, record, value))

    async def remove_finalizer(self, finalizer: str) -> None:
        """Remove the finalizer once the infrastructure is deleted (SM-08)."""
        kept = [name for name in metadata.finalizers(self.obj) if name != finalizer]
        await self._write(metadata={**self.obj["metadata"], "finalizers": kept})

    async def write_spec(self, spec: Object, conditions: Sequence[Condition] = ()) -> None:
        """Write changed fields of the spec, and record which conditions the author set.

        A single patch contains both.
        """
        types = self.recorded_conditions | {condition.type for condition in conditions}
        await self._write_main(self._put_types({**self.obj, "spec": dict(spec)}, types))

    @property
    def recorded_conditions(self) -> frozenset[str]:
        """Return the recorded types of the conditions that the author's code has set."""
        return conditions.read_recorded_types(self.obj, self._informer.resource.group)

    async def record_conditions(self, types: Set[str]) -> None:
        """Record the types of the conditions that the author's code sets, if they have changed."""
        await self._write_main(self._put_types(self.obj, types))

    def drop_conditions(self, types: Set[str]) -> None:
        """Remove conditions of these types from the status with the next write and later ones."""
        self._dropped = frozenset(types)

    def _put_types(self, obj: JSON, types: Set[str]) -> JSON:
        if types == self.recorded_conditions:
            return obj
        return self._put(obj, records.CONDITION_TYPES, conditions.format_types(types))

    def _put(self, obj: JSON, record: Record, value: str | None) -> JSON:
        group = self._informer.resource.group
        return records.put(obj, group, record, value, has_field=self._has_records)

    async def write_status(
        self, status: Object, wanted: Sequence[Condition], *, complete: bool = True
    ) -> None:
        """Write the changed fields of the status, and the ``wanted`` conditions.

        Credentials in messages are hidden.  The observed generation is written only if ``complete``
        is true (CRD-14).
        """
        shown = [replace(each, message=redact(each.message)) for each in wanted]
        full = self._writer.merge_conditions(self.obj, status, shown, self._now())
        await self._write(status=self._with_generation(full) if complete else full)

    async def write_conditions(self, *wanted: Condition) -> None:
        """Write an incomplete reconcile's conditions, without changing the rest of the status."""
        await self.write_status(metadata.mapping(self.obj, "status"), wanted, complete=False)

    def _with_generation(self, status: JSON) -> JSON:
        """Return the status with the observed generation, if the kind has that feature."""
        if self._observed is None:
            return status
        return {**status, constants.OBSERVED_GENERATION: self._observed}

    def shows(self, condition_type: str, *, status: str, reason: str = "") -> bool:
        """Return whether the status has a condition of this type, status and reason.

        An empty ``reason`` matches any.
        """
        entry = conditions.find(metadata.items(self.obj, "status", "conditions"), condition_type)
        if entry is None or entry.get("status") != status:
            return False
        return not reason or entry.get("reason") == reason

    async def _write_main(self, new: JSON) -> None:
        """Write the changed fields of the metadata and the spec in one patch."""
        await self._write(**{part: new[part] for part in ("metadata", "spec") if part in new})

    async def _write(self, **parts: JSON) -> None:
        if self._dropped and "conditions" in parts.get("status", {}):
            listed = parts["status"]["conditions"]
            kept = [entry for entry in listed if entry.get("type") not in self._dropped]
            parts["status"] = {**parts["status"], "conditions": kept}
        new = {**self.obj, **parts}
        before = self.obj
        try:
            self.obj = await write(
                self._client,
                self._informer.resource,
                self.obj,
                new,
                self._informer.update_from_write,
            )
        # The object is gone, and with it the status that could report anything.
        except NotFoundError:
            raise ObjectDeletedError from None
        # The generation of this write counts as observed, but a change by another client does not.
        if self._observed is not None and parts.get("spec", before.get("spec")) != before.get(
            "spec"
        ):
            self._observed += metadata.generation(self.obj) > metadata.generation(before)


def ready(
    status: bool | None, reason: str, message: str, severity: Severity = "Warning"
) -> Condition:
    """Return a Ready condition, Unknown if ``status`` is None.

    ``severity`` is only written in contract v1beta1 (ST-06).
    """
    return Condition(
        type=constants.READY_CONDITION,
        status=status,
        reason=reason,
        message=message,
        severity=severity,
    )


def paused(message: str) -> Condition:
    """Return a Paused condition: True with ``message``, or False if it is empty (ST-08)."""
    return Condition(
        type=constants.PAUSED_CONDITION,
        status=bool(message),
        reason=constants.REASON_PAUSED if message else constants.REASON_NOT_PAUSED,
        message=message,
        severity="Info",
    )
