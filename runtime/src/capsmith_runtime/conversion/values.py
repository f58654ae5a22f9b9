"""Converts single values between the formats of contract v1beta1 and v1beta2.

MISSING means that the other format has no such field. No function raises: invalid values are
returned unchanged, and the API server's validation rejects them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

from capsmith_runtime.contract import times

Data = dict[str, Any]
Path = tuple[str, ...]
T = TypeVar("T")


class _Missing:
    """The type of MISSING, which marks an absent value; null counts as a value."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()
_EVERYWHERE: Final[Set[Path]] = {
    *((), ("spec",), ("status",), ("spec", "template"), ("spec", "template", "spec"))
}


def copy_value(value: T) -> T:
    """Return a deep copy of a JSON value.

    `copy.deepcopy` takes several times as long, because it also handles cycles and shared parts,
    and conversions block the event loop.
    """
    return cast(T, _copy(value))


def _copy(value: Any) -> Any:
    # Most values are plain: not calling for them takes half of the time.
    if isinstance(value, dict):
        return {
            key: _copy(item) if isinstance(item, dict | list) else item
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_copy(item) if isinstance(item, dict | list) else item for item in value]
    return value


def get_value(data: Data, path: Path) -> Any:
    """Return the value at ``path``, or MISSING if there is none."""
    value: Any = data
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return MISSING
        value = value[key]
    return value


def pop_value(data: Data, path: Path, retained: Set[Path]) -> Any:
    """Remove and return the value at ``path``; return MISSING if there is none.

    Parents that become empty are removed as well, except those in ``retained``.
    """
    *above, key = path
    parent = get_value(data, tuple(above))
    if not isinstance(parent, dict) or key not in parent:
        return MISSING
    value = parent.pop(key)
    if not parent and tuple(above) not in retained:
        pop_value(data, tuple(above), retained)
    return value


def find_retained_parents(paths: Iterable[Path]) -> frozenset[Path]:
    """Return the parents that :func:`pop_value` keeps even if they are empty.

    These are the parents of ``paths``, and those that every object or template has.
    """
    above = {path[:length] for path in paths for length in range(len(path))}
    return frozenset(above | _EVERYWHERE)


def set_value(data: Data, path: Path, value: Any) -> None:
    """Set the value at ``path``; do nothing if it is MISSING or a parent is not an object."""
    if value is MISSING:
        return
    *above, last = path
    parent: Any = data
    for key in above:
        parent = parent.setdefault(key, {})
        if not isinstance(parent, dict):
            return
    parent[last] = value


INT32_MAX: Final = 2**31 - 1
NO_REASON: Final = "NoReasonReported"
DEFAULT_SEVERITY: Final = "Warning"
_REASON: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]{0,1022}[A-Za-z0-9_])?")
_OLD_REASON: Final = 256
_OLD_MESSAGE: Final = 10240


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueContext:
    """Data about the object and the cluster that the conversion of a single value needs."""

    status: Data
    """The status of the same object."""
    namespace: str = ""
    """The namespace of the object."""
    versions: Callable[[str, str], str] = lambda group, kind: ""
    """Function that returns a kind's API version for contract v1beta1, empty if it is unknown."""


Function = Callable[[Any, ValueContext], Any]


@dataclass(frozen=True, slots=True)
class Conversion:
    """A value's conversions in both directions, which need not be inverse to each other."""

    forward: Function
    backward: Function


def keep_value(value: Any, context: ValueContext) -> Any:
    """Return the value unchanged, for fields with the same format in both contract versions."""
    return value


def drop_value(value: Any, context: ValueContext) -> Any:
    """Return MISSING, because the other format has no field for the value."""
    return MISSING


def drop_false(value: Any, context: ValueContext) -> Any:
    """Return MISSING for False and null, and any other value unchanged.

    The new format omits a false flag.
    """
    return MISSING if value is None or value is False else value


def drop_empty_text(value: Any, context: ValueContext) -> Any:
    """Return the value without nulls and empty strings, at any depth.

    A value that is itself null or an empty string becomes MISSING.
    """
    if value is None or value == "":
        return MISSING
    if isinstance(value, list):
        kept = (drop_empty_text(item, context) for item in value)
        return [item for item in kept if item is not MISSING]
    if isinstance(value, dict):
        entries = {key: drop_empty_text(item, context) for key, item in value.items()}
        return {key: item for key, item in entries.items() if item is not MISSING}
    return value


def drop_zeros(value: Any, context: ValueContext) -> Any:
    """Return the object without fields that are null, false, 0 or empty, or MISSING if none remain.

    Null becomes MISSING as well; other values that are not objects are returned unchanged.
    """
    if not isinstance(value, dict):
        return MISSING if value is None else value
    # False equals 0 in Python, so false flags are dropped as well.
    kept = {key: item for key, item in value.items() if item not in (None, "", 0, {}, [])}
    return kept or MISSING


def drop_empty(value: Any, context: ValueContext) -> Any:
    """Return MISSING for null and for an empty list, and any other value unchanged."""
    return MISSING if value is None or value == [] else value


def convert_domains_to_list(value: Any, context: ValueContext) -> Any:
    """Convert an object of failure domains to a list, sorted by name (IC-08).

    Domains without a name are dropped.  Null and an object without domains become MISSING; other
    values that are not objects are returned unchanged.
    """
    if not isinstance(value, dict):
        return MISSING if value is None else value
    # Maps have no order: without sorting, the list could differ between two conversions.
    entries = [
        {"name": name, **{key: item for key, item in (domain or {}).items() if key != "name"}}
        for name, domain in sorted(value.items())
        if name and isinstance(domain, dict | None)
    ]
    return entries or MISSING


def convert_domains_to_map(value: Any, context: ValueContext) -> Any:
    """Convert a list of failure domains to an object keyed by name (IC-09).

    Null becomes MISSING; other values that are not lists are returned unchanged.
    """
    if not isinstance(value, list):
        return MISSING if value is None else value
    return {
        each["name"]: {key: item for key, item in each.items() if key != "name"}
        for each in value
        if isinstance(each, dict) and isinstance(each.get("name"), str) and each["name"]
    }


def convert_conditions_to_new(value: Any, context: ValueContext) -> Any:
    """Return the conditions in the v1beta2 format: one of each type, without severity (ST-01).

    Each condition has a valid reason and a message.  Conditions without a type are dropped.
    """
    if not isinstance(value, list):
        return MISSING if value is None else value
    conditions: dict[str, Data] = {}
    for entry in value:
        if not isinstance(entry, dict) or not entry.get("type"):
            continue
        reason = entry.get("reason")
        valid = isinstance(reason, str) and _REASON.fullmatch(reason)
        kept = {key: item for key, item in entry.items() if key != "severity"}
        # The new schema requires a reason of a certain form and a message, the old one requires
        # neither.
        kept |= {"reason": reason if valid else NO_REASON, "message": entry.get("message") or ""}
        # The first condition of each type is kept, because the list is a map by type in the new
        # schema.
        conditions.setdefault(str(entry["type"]), kept)
    return list(conditions.values())


def convert_conditions_to_old(value: Any, context: ValueContext) -> Any:
    """Return conditions in the v1beta1 format (ST-02).

    Reasons and messages are cut to their maximum length, ``observedGeneration`` is removed, and
    False conditions get a severity. Null becomes MISSING; other values that are not lists are
    returned unchanged.
    """
    if not isinstance(value, list):
        return MISSING if value is None else value
    return [_old_condition(entry) for entry in value if isinstance(entry, dict)]


def _old_condition(entry: Mapping[str, Any]) -> Data:
    old = {key: item for key, item in entry.items() if key != "observedGeneration"}
    for key, limit in (("reason", _OLD_REASON), ("message", _OLD_MESSAGE)):
        # The old schema rejects longer strings.
        if isinstance(old.get(key), str):
            old[key] = old[key][:limit]
    if not old.get("message"):
        old.pop("message", None)
    # The placeholder of the other direction: the old format does not require a reason.
    if old.get("reason") == NO_REASON:
        del old["reason"]
    if old.get("status") == "False":
        old["severity"] = DEFAULT_SEVERITY
    return old


def convert_reference_to_new(value: Any, context: ValueContext) -> Any:
    """Return the reference with only group, kind and name (CP-12).

    Null becomes MISSING; other values that are not objects are returned unchanged.
    """
    if not isinstance(value, dict):
        return MISSING if value is None else value
    group = str(value.get("apiVersion") or "").rpartition("/")[0]
    reference = {"apiGroup": group, "kind": value.get("kind"), "name": value.get("name")}
    return {key: item for key, item in reference.items() if item}


def convert_reference_to_old(value: Any, context: ValueContext) -> Any:
    """Return the reference with a version and the object's namespace (CP-13)."""
    if not isinstance(value, dict):
        return MISSING if value is None else value
    group, kind = str(value.get("apiGroup") or ""), str(value.get("kind") or "")
    version = context.versions(group, kind)
    old = {
        "apiVersion": f"{group}/{version}" if group and version else "",
        "kind": kind,
        "name": value.get("name"),
        "namespace": context.namespace,
    }
    return {key: item for key, item in old.items() if item}


def convert_to_seconds(value: Any, context: ValueContext) -> Any:
    """Return a duration in whole seconds, at most the maximum of int32 (CP-14).

    An invalid duration becomes MISSING.
    """
    count = times.parse_seconds(value)
    return MISSING if count is None else min(count, INT32_MAX)


def convert_to_duration(value: Any, context: ValueContext) -> Any:
    """Return seconds as a duration string (CP-15), or MISSING if they are not an integer ≥ 0."""
    return times.format_seconds(value) if isinstance(value, int) and value >= 0 else MISSING


def compute_complement(value: Any, context: ValueContext) -> Any:
    """Return the number of replicas that ``value`` does not count (CP-05, CP-06).

    MISSING if ``value`` or the number of replicas in the status is not an integer.
    """
    replicas = context.status.get("replicas")
    if not isinstance(value, int) or not isinstance(replicas, int):
        return MISSING
    return max(0, replicas - value)


CONVERSIONS: Final[Mapping[str, Conversion]] = {
    "as-is": Conversion(keep_value, keep_value),
    "flag": Conversion(drop_false, keep_value),
    "text": Conversion(drop_empty_text, keep_value),
    "empty-object": Conversion(drop_zeros, keep_value),
    "empty-list": Conversion(drop_empty, keep_value),
    "map-to-list": Conversion(convert_domains_to_list, convert_domains_to_map),
    "conditions": Conversion(convert_conditions_to_new, convert_conditions_to_old),
    "reference": Conversion(convert_reference_to_new, convert_reference_to_old),
    "seconds": Conversion(convert_to_seconds, convert_to_duration),
    "complement": Conversion(compute_complement, compute_complement),
    "none": Conversion(drop_value, drop_value),
}
"""Conversions, keyed by their name in the contract data."""
