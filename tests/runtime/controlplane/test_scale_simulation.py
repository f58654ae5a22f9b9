"""Simulated control planes: whatever happens, they keep the quorum and reach the desired state."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from capsmith_runtime.controlplane.scale_decision import (
    Decision,
    MachineInput,
    ScaleDown,
    ScaleInput,
    ScaleUp,
    decide,
    quorum,
)

DOMAINS = ("a", "b", "c")
MAX_STEPS = 80


@dataclass
class Simulation:
    """A control plane, and events that can happen to it between two decisions."""

    replicas: int
    max_surge: int = 1
    machines: dict[str, MachineInput] = field(default_factory=dict)
    initialized: bool = False
    remediation_in_progress: bool = False
    created: int = 0
    maximum: int = 0

    def decide(self) -> Decision:
        return decide(self._scale_input())

    def _scale_input(self) -> ScaleInput:
        return ScaleInput(
            replicas=self.replicas,
            max_surge=self.max_surge,
            machines=list(self.machines.values()),
            domains=DOMAINS,
            initialized=self.initialized,
            remediation_in_progress=self.remediation_in_progress
            and len(self.machines) < self.replicas,
        )

    def step(self) -> bool:
        """Take the step that is due; report whether there was one."""
        before, step = self._scale_input(), self.decide().step
        if isinstance(step, ScaleUp):
            _check_scale_up(before)
            self._create(step)
        elif isinstance(step, ScaleDown):
            _check_scale_down(before, step)
            self._change(step.name, deleting=True)
            self.remediation_in_progress = step.cause == "remediating"
        return step is not None

    def pass_time(self) -> None:
        """Complete what is in progress."""
        for name, machine in list(self.machines.items()):
            if machine.deleting:
                del self.machines[name]
            elif not machine.joined:
                self._change(name, joined=True, had_node=True)
        self.initialized = self.initialized or any(m.joined for m in self.machines.values())

    def apply(self, event: str, number: int) -> None:
        """Apply an event that the control plane has not caused."""
        if event == "time":
            self.pass_time()
        elif event == "scale":
            self.replicas = 1 + number % 5
        elif event == "upgrade":
            for name in self.machines:
                self._change(name, up_to_date=False)
        elif self.machines:
            name = sorted(self.machines)[number % len(self.machines)]
            if event == "break":
                self._change(name, checks_passed=False)
            elif event == "fail_check":
                self._change(name, checks_passed=False, needs_remediation=True)
            elif event == "heal":
                self._change(name, checks_passed=True, needs_remediation=False)
            elif event == "mark":
                self._change(name, delete_annotation=True)
            elif event == "delete":
                self._change(name, deleting=True)

    def heal(self) -> None:
        for name in self.machines:
            self._change(name, checks_passed=True, needs_remediation=False)

    def _create(self, step: ScaleUp) -> None:
        name = f"m{self.created:03}"
        self.created += 1
        self.machines[name] = MachineInput(
            name=name, created=name, domain=step.domain, joined=False, had_node=False
        )
        self.remediation_in_progress = False
        self.maximum = max(self.maximum, len(self.machines))

    def _change(self, name: str, **changes: Any) -> None:
        self.machines[name] = replace(self.machines[name], **changes)


def _check_scale_up(before: ScaleInput) -> None:
    assert not any(m.deleting for m in before.machines), "a Machine is being deleted"
    if before.remediation_in_progress or not before.machines:
        return
    assert all(m.healthy for m in before.machines), "a Machine is not healthy"
    limit = before.replicas - 1 + _surge(before)
    assert len(before.machines) <= limit, "above the maximal surge"


def _check_scale_down(before: ScaleInput, step: ScaleDown) -> None:
    others = [m for m in before.machines if m.name != step.name]
    assert not any(m.deleting for m in before.machines), "two would be deleted at a time"
    if not others:
        assert not before.initialized, "the last member of a working control plane"
        return
    assert before.initialized
    assert sum(m.healthy for m in others) >= quorum(len(others)), "the quorum would be lost"
    if step.cause != "remediating":
        assert all(m.healthy for m in others)
        lost = 0 if _surge(before) else 1
        assert len(before.machines) > before.replicas - lost


def _surge(scale_input: ScaleInput) -> int:
    """Return the surge that is safe: with fewer than three Machines none may be missing."""
    return scale_input.max_surge if scale_input.replicas >= 3 else 1


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "time",
                "time",
                "time",
                "scale",
                "upgrade",
                "break",
                "fail_check",
                "heal",
                "mark",
                "delete",
            ]
        ),
        st.integers(0, 9),
    ),
    max_size=40,
)


@settings(max_examples=400, deadline=None)
@given(replicas=st.integers(1, 5), max_surge=st.integers(0, 1), events=EVENTS)
def test_the_quorum_is_kept_and_the_desired_state_is_reached(
    replicas: int, max_surge: int, events: list[tuple[str, int]]
) -> None:
    """Proves: CP-31."""
    simulation = Simulation(replicas, max_surge)
    for event, number in events:
        simulation.step()
        simulation.apply(event, number)
    for _ in range(MAX_STEPS):
        simulation.heal()
        progressed = simulation.step()
        simulation.pass_time()
        if (
            not progressed
            and not simulation.step()
            and not any(m.deleting for m in simulation.machines.values())
        ):
            break

    assert simulation.decide() == Decision()
    assert len(simulation.machines) == simulation.replicas
    assert all(m.healthy and m.up_to_date for m in simulation.machines.values())
    assert simulation.maximum <= 6


@settings(max_examples=100, deadline=None)
@given(before=st.integers(1, 5), after=st.integers(1, 5), max_surge=st.integers(0, 1))
def test_machines_are_spread_evenly_after_scaling_and_rollout(
    before: int, after: int, max_surge: int
) -> None:
    """Proves: CP-24."""
    simulation = Simulation(before, max_surge)
    for change in (None, "scale", "upgrade"):
        if change is not None:
            simulation.apply(change, after - 1)
        for _ in range(MAX_STEPS):
            simulation.step()
            simulation.pass_time()
        counts = Counter(m.domain for m in simulation.machines.values())
        assert max(counts.values()) - min(counts[name] for name in DOMAINS) <= 1


@settings(max_examples=100, deadline=None)
@given(replicas=st.integers(1, 5), max_surge=st.integers(0, 1))
def test_a_rollout_replaces_every_machine_once(replicas: int, max_surge: int) -> None:
    simulation = Simulation(replicas, max_surge)
    surge = max_surge if replicas >= 3 else 1
    for change in (None, "upgrade"):
        if change is not None:
            simulation.apply(change, 0)
        for _ in range(MAX_STEPS):
            simulation.step()
            assert len(simulation.machines) <= replicas + surge
            simulation.pass_time()

    assert simulation.created == 2 * replicas
