"""Retries of remediation: limits, delays, and the records of earlier attempts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from capsmith_runtime.contract.control_plane import ControlPlaneMachine
from capsmith_runtime.contract.control_plane_shapes import CORE_MACHINES
from capsmith_runtime.controlplane.annotations import (
    Annotations,
    PendingMachine,
    RemediationData,
    RemediationDelay,
    RemediationStrategy,
    encode,
    find_remediation_delay,
    read_pending_machine,
    read_remediation_strategy,
    start_remediation,
)

NOW = datetime(2030, 1, 1, tzinfo=UTC)
ANNOTATIONS = Annotations("foocontrolplane.controlplane.example.com")
PENDING = PendingMachine(
    name="m", domain=None, infrastructure="a", template="b", bootstrap_spec="c", version="v1.34.0"
)


def _machine(**annotations: str) -> ControlPlaneMachine:
    return CORE_MACHINES["v1beta2"].read({"metadata": {"name": "m", "annotations": annotations}})


def _replacement(minutes: float, retries: int) -> ControlPlaneMachine:
    """Return a Machine that replaced another one some minutes ago."""
    time = (NOW - timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")
    data = RemediationData(machine="before", time=time, retries=retries)
    return _machine(**{ANNOTATIONS.remediation_for: encode(data)})


def test_a_replacement_that_fails_soon_counts_as_a_retry() -> None:
    """Proves: CP-31."""
    strategy = RemediationStrategy(max_retry=2, retry_period_seconds=600)

    def retry_after(machine: ControlPlaneMachine) -> RemediationDelay:
        return find_remediation_delay(machine, ANNOTATIONS.remediation_for, strategy, NOW)

    def retries(machine: ControlPlaneMachine) -> int:
        annotation = ANNOTATIONS.remediation_for
        return start_remediation(machine, annotation, strategy, NOW).retries

    assert retry_after(_machine()).message == ""
    assert retry_after(_replacement(5, 0)).seconds == 300
    assert retry_after(_replacement(11, 1)).message == ""
    assert "without success" in retry_after(_replacement(11, 2)).message
    assert retry_after(_replacement(61, 2)).message == ""
    assert retries(_replacement(5, 1)) == 2
    assert retries(_replacement(61, 1)) == 0


def test_the_strategy_of_the_spec() -> None:
    """Proves: CP-31."""
    spec = {"remediation": {"maxRetry": 0, "minHealthyPeriodSeconds": 0}}

    strategy = RemediationStrategy(max_retry=0, min_healthy_seconds=0)
    assert read_remediation_strategy({"spec": spec}) == strategy
    assert read_remediation_strategy({}) == RemediationStrategy()


def test_unreadable_records_count_as_missing() -> None:
    texts = ("", "{", "[]", '{"name": "m"}', "null", "[" * 100_000)
    wrong = replace(PENDING, version=["v1.34.0"])  # type: ignore[arg-type]  # as users write it
    assert read_pending_machine({ANNOTATIONS.pending_machine: encode(PENDING)}, ANNOTATIONS)
    for text in (*texts, encode(wrong)):
        assert read_pending_machine({ANNOTATIONS.pending_machine: text}, ANNOTATIONS) is None


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
@pytest.mark.parametrize("seconds", [-(2**31), 2**31 - 1])
def test_any_time_and_period_can_be_compared(time: str, seconds: int) -> None:
    """Users write both: an error would end each reconcile of the control plane."""
    data = RemediationData(machine="before", time=time, retries=0)
    machine = _machine(**{ANNOTATIONS.remediation_for: encode(data)})
    strategy = RemediationStrategy(retry_period_seconds=seconds, min_healthy_seconds=seconds)

    find_remediation_delay(machine, ANNOTATIONS.remediation_for, strategy, NOW)
    assert start_remediation(machine, ANNOTATIONS.remediation_for, strategy, NOW).retries <= 1


def test_retries_that_are_no_number_count_as_missing() -> None:
    data = RemediationData(machine="m", time="2029-12-31T23:59:00Z", retries="many")  # type: ignore[arg-type]  # as users write it
    machine = _machine(**{ANNOTATIONS.remediation_for: encode(data)})
    strategy = RemediationStrategy(max_retry=1)

    assert not find_remediation_delay(machine, ANNOTATIONS.remediation_for, strategy, NOW).message
