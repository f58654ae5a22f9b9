"""Condition lists, in the format of metav1.Condition and in the older v1beta1 format.

A patch replaces a list as a whole, so both merge functions return the complete list. Conditions
from other writers stay unchanged, and a condition that does not change keeps its
``lastTransitionTime``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from capsmith_runtime.contract import metadata, records
from capsmith_runtime.contract.model import Condition, Object, shorten_message

_WORDS: Mapping[bool | None, str] = {True: "True", False: "False", None: "Unknown"}


def find(conditions: Sequence[Object], condition_type: str) -> Object | None:
    """Return the condition of type ``condition_type``, or None if there is none."""
    # `lookup`, because the conditions of another provider's object may have any shape.
    found = (entry for entry in conditions if metadata.lookup(entry, "type") == condition_type)
    return next(found, None)


def merge(
    existing: Sequence[Object], wanted: Iterable[Condition], *, generation: int | None, now: str
) -> list[dict[str, Any]]:
    """Return ``existing`` with the ``wanted`` conditions merged in, as metav1.Condition (ST-01).

    ``generation`` is written as their ``observedGeneration``, unless it is None; ``now`` is a time
    in RFC 3339.
    """
    fresh = {}
    for condition in wanted:
        entry: dict[str, Any] = {
            "type": condition.type,
            "status": _WORDS[condition.status],
            "reason": condition.reason,
            "message": shorten_message(condition.message),
        }
        if generation is not None:
            entry["observedGeneration"] = generation
        fresh[condition.type] = _with_time(entry, existing, now)
    return _replace(existing, fresh)


def merge_old_shape(
    existing: Sequence[Object], wanted: Iterable[Condition], *, now: str
) -> list[dict[str, Any]]:
    """Return ``existing`` with the ``wanted`` conditions merged in, in the v1beta1 format (ST-02).

    ``now`` is an RFC 3339 timestamp. A severity is written only for conditions that are False.
    """
    fresh = {}
    for condition in wanted:
        entry: dict[str, Any] = {
            "type": condition.type,
            "status": _WORDS[condition.status],
            "reason": condition.reason,
        }
        if condition.message:
            entry["message"] = shorten_message(condition.message)
        if condition.status is False:
            entry["severity"] = condition.severity
        fresh[condition.type] = _with_time(entry, existing, now)
    return _replace(existing, fresh)


def remove(existing: Sequence[Object], condition_type: str) -> list[dict[str, Any]]:
    """Return the list without the condition of type ``condition_type``."""
    return [dict(entry) for entry in existing if entry.get("type") != condition_type]


def _with_time(entry: dict[str, Any], existing: Sequence[Object], now: str) -> dict[str, Any]:
    before = find(existing, entry["type"])
    # Only a change of the status is a transition: tools compute from this time how long it has
    # lasted.
    same_status = before is not None and before.get("status") == entry["status"]
    kept = before.get("lastTransitionTime") if before is not None and same_status else None
    return {**entry, "lastTransitionTime": kept or now}


def _replace(
    existing: Sequence[Object], fresh: Mapping[str, dict[str, Any]]
) -> list[dict[str, Any]]:
    # Existing entries keep their positions: a different order would change the whole list.
    kept = [fresh.get(entry.get("type", ""), dict(entry)) for entry in existing]
    known = {entry.get("type") for entry in existing}
    return kept + [entry for name, entry in fresh.items() if name not in known]


# Conditions of other writers must stay (ST-10), and nothing in a condition names its writer. So
# a record lists the author's types; it is written before the conditions, which makes it complete
# after a crash between the two.
def read_recorded_types(obj: Object, group: str) -> frozenset[str]:
    """Return the recorded types of the conditions that the author's code wrote.

    The set is empty if none are recorded.
    """
    text = records.read(obj, group, records.CONDITION_TYPES) or ""
    return frozenset(name for name in text.split(",") if name)


def format_types(types: Set[str]) -> str | None:
    """Return the record of condition types, or None for no types, which need no record."""
    return ",".join(sorted(types)) or None
