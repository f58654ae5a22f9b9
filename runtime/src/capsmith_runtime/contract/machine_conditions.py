"""Conditions of Machines that a remediation writes, in the format of each version of core's API."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from capsmith_runtime.contract import conditions, metadata
from capsmith_runtime.contract.constants import (
    HEALTH_CHECK_SUCCEEDED_CONDITION,
    OWNER_REMEDIATED_CONDITION,
    REASON_WAITING_FOR_REMEDIATION,
)
from capsmith_runtime.contract.model import Condition, Object

EXTERNALLY_REMEDIATED_CONDITION: Final = "ExternallyRemediated"


def request_owner_remediation(message: str) -> Condition:
    """Return the condition that asks a Machine's owner to remediate it."""
    return Condition(
        type=OWNER_REMEDIATED_CONDITION,
        status=False,
        reason=REASON_WAITING_FOR_REMEDIATION,
        message=message,
        severity="Warning",
    )


def is_marked_unhealthy(machine: Object) -> bool:
    """Return whether core has recorded that a Machine failed its health check."""
    lists = (("status", "v1beta2", "conditions"), ("status", "conditions"))
    found = (
        conditions.find(metadata.items(machine, *path), HEALTH_CHECK_SUCCEEDED_CONDITION)
        for path in lists
    )
    return any(each is not None and each.get("status") == "False" for each in found)


def build_machine_status(
    machine: Object, present: Sequence[Condition], absent: Iterable[str], now: str
) -> dict[str, Any]:
    """Return a Machine's status with the conditions ``present``, and without the types ``absent``.

    ``now`` is an RFC 3339 timestamp. OwnerRemediated stays as it is if it is False already: the
    Machine's owner reports its progress in it.
    """
    status = dict(metadata.mapping(machine, "status"))
    if metadata.text(machine, "apiVersion").endswith("/v1beta1"):
        # Core up to v1.10 acts on the first list, and shows users the second, too.
        old = metadata.items(status, "conditions")
        owned = [each for each in present if each.type == OWNER_REMEDIATED_CONDITION]
        status["conditions"] = conditions.merge_old_shape(old, _select_missing(old, owned), now=now)
        nested = metadata.mapping(status, "v1beta2")
        listed = _merge(machine, metadata.items(nested, "conditions"), present, absent, now)
        return {**status, "v1beta2": {**nested, "conditions": listed}}
    listed = _merge(machine, metadata.items(status, "conditions"), present, absent, now)
    return {**status, "conditions": listed}


def _merge(
    machine: Object,
    listed: Sequence[Object],
    present: Sequence[Condition],
    absent: Iterable[str],
    now: str,
) -> list[dict[str, Any]]:
    for name in absent:
        listed = conditions.remove(listed, name)
    generation = metadata.generation(machine)
    return conditions.merge(
        listed, _select_missing(listed, present), generation=generation, now=now
    )


def _select_missing(listed: Sequence[Object], present: Sequence[Condition]) -> list[Condition]:
    """Return the conditions to write; that of an owner who has begun is left alone."""
    owned = conditions.find(listed, OWNER_REMEDIATED_CONDITION) or {}
    has_begun = owned.get("status") == "False"
    return [each for each in present if not (has_begun and each.type == OWNER_REMEDIATED_CONDITION)]
