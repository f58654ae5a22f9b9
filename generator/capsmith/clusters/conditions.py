"""Read an object's conditions, wherever either contract version puts them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

JSON = dict[str, Any]

V1BETA1, V1BETA2 = "v1beta1", "v1beta2"


@dataclass(frozen=True)
class ObjectCondition:
    """A condition, and the contract version whose format it has."""

    contract: str
    """``v1beta1`` or ``v1beta2``; empty if the object does not show which."""
    type: str
    status: str
    reason: str
    message: str
    since: str
    """Time of the last transition, in RFC 3339 format; empty if missing."""


def list_conditions(obj: Mapping[str, Any]) -> list[ObjectCondition]:
    """Return an object's conditions for both contract versions, ``status.conditions`` first.

    Entries that are not conditions are left out.  While a kind moves to contract version v1beta2,
    its new conditions are in ``status.v1beta2.conditions`` and later its old conditions are in
    ``status.deprecated.v1beta1.conditions``.
    """
    status = get_mapping(obj.get("status"))
    later = get_mapping(status.get(V1BETA2)).get("conditions")
    former = get_mapping(get_mapping(status.get("deprecated")).get(V1BETA1)).get("conditions")
    main = status.get("conditions")
    contract = V1BETA1 if later is not None else V1BETA2 if former is not None else ""
    return [*_read(main, contract), *_read(later, V1BETA2), *_read(former, V1BETA1)]


def select_current(conditions: list[ObjectCondition]) -> list[ObjectCondition]:
    """Return the conditions for the newest contract version that has any."""
    for contract in (V1BETA2, "", V1BETA1):
        found = [each for each in conditions if each.contract == contract]
        if found:
            return found
    return []


def get_mapping(value: object) -> JSON:
    """Return ``value`` if it is a mapping, else an empty mapping."""
    return value if isinstance(value, dict) else {}


def get_sequence(value: object) -> list[Any]:
    """Return ``value`` if it is a list, else an empty list."""
    return value if isinstance(value, list) else []


def _read(conditions: object, contract: str) -> Iterator[ObjectCondition]:
    for each in map(get_mapping, get_sequence(conditions)):
        if each.get("type"):
            yield ObjectCondition(
                contract,
                str(each["type"]),
                str(each.get("status") or ""),
                str(each.get("reason") or ""),
                str(each.get("message") or ""),
                str(each.get("lastTransitionTime") or ""),
            )
