"""Values that the manager records in an object so that they survive ``clusterctl move``.

A move copies metadata and spec, but not the status.  Kinds that have the field ``spec.recorded``
keep their records there, and other kinds in annotations.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.model import Object

FEATURE: Final = "recorded"
"""Name of the field in the spec, and of the feature that adds it to a kind."""


class Record(NamedTuple):
    """The names of the annotation and of the field that can store a record."""

    annotation: str
    """Name of the annotation, without the group."""
    field: str
    """Name of the field below ``spec.recorded``."""

    def build_annotation_name(self, group: str) -> str:
        """Return the name of the annotation that stores this record on objects of the API group."""
        return f"{group}/{self.annotation}"


EXTERNAL_ID: Final = Record("external-id", "externalID")
ACCOUNT: Final = Record("account", "account")
CONDITION_TYPES: Final = Record("conditions", "conditionTypes")
IDENTITY: Final = Record("identity", "identity")
"""The identity whose credentials an object has used last; empty if it has used none."""
SOURCES: Final = Record("sources", "sources")
"""The identities from which that one is derived, separated by commas."""


def read(obj: Object, group: str, record: Record) -> str | None:
    """Return a record's value from the field or the annotation, or None if there is none."""
    value = metadata.lookup(obj, "spec", FEATURE, record.field)
    if isinstance(value, str):
        return value
    return metadata.annotations(obj).get(record.build_annotation_name(group))


def put(
    obj: Object, group: str, record: Record, value: str | None, *, has_field: bool
) -> dict[str, Any]:
    """Return a copy of an object with a record set to ``value``, or removed if that is None.

    ``has_field`` is true for kinds that have ``spec.recorded``.  A record that such an object has
    in an annotation stays there.
    """
    name = record.build_annotation_name(group)
    annotations = dict(metadata.annotations(obj))
    fields = metadata.mapping(obj, "spec", FEATURE)
    # A record in an annotation stays there: after a rollback, a manager of an older release reads
    # no other place, and would consider a moved object's infrastructure lost.
    if has_field and (name not in annotations or record.field in fields):
        changed = _drop_none({**fields, record.field: value})
        return {**obj, "spec": {**metadata.mapping(obj, "spec"), FEATURE: changed}}
    changed = _drop_none({**annotations, name: value})
    return {**obj, "metadata": {**metadata.mapping(obj, "metadata"), "annotations": changed}}


def _drop_none(values: dict[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in values.items() if value is not None}
