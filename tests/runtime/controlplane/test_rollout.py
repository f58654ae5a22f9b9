"""Which Machines are outdated, and when time alone makes one outdated."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from capsmith_runtime.contract.control_plane import ControlPlaneMachine
from capsmith_runtime.contract.control_plane_shapes import CORE_MACHINES
from capsmith_runtime.contract.model import ObjectRef
from capsmith_runtime.controlplane.annotations import Annotations, digest
from capsmith_runtime.controlplane.rollout import (
    RolloutCriteria,
    find_next_rollout_seconds,
    find_outdated_reasons,
)

NOW = datetime(2030, 1, 1, tzinfo=UTC)
ANNOTATIONS = Annotations("foocontrolplane.controlplane.example.com")
TEMPLATE = ObjectRef("infrastructure.example.com", "FooMachineTemplate", "t1")
SPEC = {"packages": ["a"], "files": [{"path": "/x"}]}
CRITERIA = RolloutCriteria(
    version="v1.34.0",
    template=TEMPLATE,
    bootstrap_spec=SPEC,
    bootstrap_annotation=ANNOTATIONS.bootstrap_spec,
)


def _machine(**changes: Any) -> ControlPlaneMachine:
    made = CORE_MACHINES["v1beta2"].read(
        {
            "metadata": {"name": "m", "creationTimestamp": "2029-12-31T00:00:00Z"},
            "spec": {"version": "v1.34.0"},
        }
    )
    return replace(made, **changes)


def _infrastructure(name: str = "t1", kind: str = "FooMachineTemplate") -> dict[str, Any]:
    prefix = "cluster.x-k8s.io/cloned-from"
    group = "infrastructure.example.com"
    notes = {f"{prefix}-name": name, f"{prefix}-groupkind": f"{kind}.{group}"}
    return {"kind": "FooMachine", "metadata": {"annotations": notes}}


def _bootstrap(spec: Any = SPEC, asked: Any = SPEC) -> dict[str, Any]:
    notes = {ANNOTATIONS.bootstrap_spec: digest(asked)}
    return {"kind": "FooConfig", "metadata": {"annotations": notes}, "spec": spec}


def _reasons(**changes: Any) -> tuple[str, ...]:
    given: dict[str, Any] = {
        "machine": _machine(),
        "infrastructure": _infrastructure(),
        "bootstrap": _bootstrap(),
    }
    given |= {"criteria": CRITERIA, "now": NOW} | changes
    return find_outdated_reasons(**given)


def test_a_machine_as_it_would_be_created_now_is_up_to_date() -> None:
    assert _reasons() == ()
    assert _reasons(infrastructure=None, bootstrap=None) == ()
    assert _reasons(infrastructure={"kind": "FooMachine"}) == ()


@pytest.mark.parametrize(
    "changes",
    [
        {"machine": _machine(version="v1.33.0")},
        {"infrastructure": _infrastructure("t0")},
        {"infrastructure": _infrastructure(kind="BarMachineTemplate")},
        {"bootstrap": _bootstrap({"packages": ["b"], "files": [{"path": "/x"}]})},
        {"bootstrap": _bootstrap({"packages": ["a"]})},
        {"criteria": replace(CRITERIA, rollout_after=NOW - timedelta(hours=1))},
        {
            "machine": _machine(certificates_expiry="2030-01-10T00:00:00Z"),
            "criteria": replace(CRITERIA, certificates_expiry_seconds=20 * 86400),
        },
    ],
    ids=["version", "template", "kind", "spec", "spec grew", "time", "certificates"],
)
def test_reasons_for_which_a_machine_is_outdated(changes: dict[str, Any]) -> None:
    """Proves: CP-18."""
    (reason,) = _reasons(**changes)
    assert reason


def test_a_deadline_in_the_future_replaces_no_machine() -> None:
    """Proves: CP-18."""
    later = replace(CRITERIA, rollout_after=NOW + timedelta(minutes=5))
    earlier = replace(CRITERIA, rollout_after=NOW - timedelta(days=30))
    soon = replace(CRITERIA, certificates_expiry_seconds=20 * 86400.0)
    machine = _machine(certificates_expiry="2030-02-01T00:00:00Z")

    assert _reasons(criteria=later) == _reasons(criteria=earlier) == ()
    assert _reasons(criteria=soon, machine=machine) == ()
    assert find_next_rollout_seconds((machine,), later, NOW) == 301.0
    assert find_next_rollout_seconds((machine,), soon, NOW) == 11 * 86400 + 1.0
    assert find_next_rollout_seconds((machine,), earlier, NOW) is None


def test_fields_that_others_set_replace_no_machine() -> None:
    more = {**SPEC, "format": "cloud-config", "files": [{"path": "/x", "owner": "root"}]}

    assert _reasons(bootstrap=_bootstrap(more)) == ()
    # A default that came with a new schema is in both.
    assert _reasons(bootstrap=_bootstrap({**SPEC, "new": 1}, SPEC)) == ()
    defaulted = replace(CRITERIA, bootstrap_spec={**SPEC, "new": 1})
    assert _reasons(criteria=defaulted, bootstrap=_bootstrap({**SPEC, "new": 1}, SPEC)) == ()


def test_a_field_removed_from_the_spec_replaces_the_machine() -> None:
    before = {**SPEC, "format": "ignition"}

    assert _reasons(bootstrap=_bootstrap(before, before))


def test_an_empty_spec_requires_nothing() -> None:
    nothing = replace(CRITERIA, bootstrap_spec={})

    assert _reasons(criteria=nothing, bootstrap=_bootstrap({"format": "x"}, {})) == ()
    assert _reasons(criteria=nothing, bootstrap=_bootstrap({}, {})) == ()


@pytest.mark.parametrize("expiry", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
@pytest.mark.parametrize("days", [7, 2**31 - 1])
def test_any_expiry_can_be_compared(expiry: str, days: int) -> None:
    """Users write both: an error would end each reconcile of the control plane."""
    criteria = replace(CRITERIA, certificates_expiry_seconds=days * 86400.0)
    machine = _machine(certificates_expiry=expiry)

    reasons = find_outdated_reasons(machine, criteria, _infrastructure(), _bootstrap(), NOW)
    is_soon = expiry < "2030" or days > 3_000_000
    assert bool(reasons) is is_soon
    assert (find_next_rollout_seconds([machine], criteria, NOW) is None) is is_soon
