"""Condition lists of both shapes."""

from __future__ import annotations

import pytest

from capsmith_runtime.contract import conditions
from capsmith_runtime.contract.model import MAX_MESSAGE, Condition

FOREIGN = {"type": "Foreign", "status": "True", "lastTransitionTime": "t0", "custom": 1}


def ready(status: bool | None, message: str = "", reason: str = "Because") -> Condition:
    return Condition(type="Ready", status=status, reason=reason, message=message)


def test_a_new_condition_joins_those_of_others() -> None:
    """Proves: ST-01, ST-10."""
    assert conditions.merge([FOREIGN], [ready(True, "m")], generation=3, now="t1") == [
        FOREIGN,
        {
            "type": "Ready",
            "status": "True",
            "reason": "Because",
            "message": "m",
            "observedGeneration": 3,
            "lastTransitionTime": "t1",
        },
    ]


def test_unchanged_conditions_stay_identical() -> None:
    once = conditions.merge([FOREIGN], [ready(False, "m")], generation=3, now="t1")

    assert conditions.merge(once, [ready(False, "m")], generation=3, now="t2") == once


def test_the_transition_time_changes_with_the_status_only() -> None:
    before = conditions.merge([], [ready(False, "m")], generation=1, now="t1")
    (same,) = conditions.merge(before, [ready(False, "other")], generation=2, now="t2")
    (other,) = conditions.merge(before, [ready(None, "m")], generation=1, now="t2")

    assert (same["lastTransitionTime"], same["message"]) == ("t1", "other")
    assert (other["lastTransitionTime"], other["status"]) == ("t2", "Unknown")


def test_the_old_shape_has_a_severity_only_when_false() -> None:
    """Proves: ST-02."""
    (false,) = conditions.merge_old_shape([], [ready(False)], now="t1")
    (true,) = conditions.merge_old_shape([false], [ready(True)], now="t2")

    assert false == {
        "type": "Ready",
        "status": "False",
        "reason": "Because",
        "severity": "Warning",
        "lastTransitionTime": "t1",
    }
    assert "severity" not in true
    assert true["lastTransitionTime"] == "t2"


def test_broken_entries_of_others_do_no_harm() -> None:
    existing = [{"status": "True"}, {"type": "Ready"}]

    merged = conditions.merge(existing, [ready(True)], generation=1, now="t1")

    assert merged[0] == {"status": "True"}
    assert merged[1]["lastTransitionTime"] == "t1"


def test_messages_are_cut() -> None:
    (entry,) = conditions.merge([], [ready(True, "x" * 100_000)], generation=1, now="t")
    assert len(entry["message"]) == MAX_MESSAGE


@pytest.mark.parametrize("reason", ["", "two words", "ends:", "1st", "x" * 1025])
def test_reasons_that_the_api_server_refuses(reason: str) -> None:
    with pytest.raises(ValueError, match="CamelCase"):
        ready(True, reason=reason)
