"""Control planes over time: whatever happens to them, no quorum is lost, and they get there."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from capsmith_generated.controllers.control_plane.scaling import decide
from capsmith_generated.controllers.control_plane.situation import (
    Create,
    Decision,
    Member,
    Remove,
    Situation,
    quorum,
)
from hypothesis import given, settings
from hypothesis import strategies as st

DOMAINS = ("a", "b", "c")
STEPS_TO_REST = 80


@dataclass
class World:
    """A control plane, and everything that can happen to it between two decisions."""

    wanted: int
    members: dict[str, Member] = field(default_factory=dict)
    initialized: bool = False
    replacing: bool = False
    made: int = 0
    most: int = 0

    def decide(self) -> Decision:
        return decide(self._situation())

    def _situation(self) -> Situation:
        return Situation(
            wanted=self.wanted,
            members=list(self.members.values()),
            domains=DOMAINS,
            initialized=self.initialized,
            replacing=self.replacing and len(self.members) < self.wanted,
        )

    def step(self) -> bool:
        """Take the step that is due; whether there was one."""
        before, found = self._situation(), self.decide()
        if isinstance(found.step, Create):
            _check_creation(before)
            self._create(found.step)
        elif isinstance(found.step, Remove):
            _check_removal(before, found.step)
            self._change(found.step.name, deleting=True)
            self.replacing = found.step.cause == "remediating"
        return found.step is not None

    def pass_time(self) -> None:
        """Whatever was begun comes to its end."""
        for name, member in list(self.members.items()):
            if member.deleting:
                del self.members[name]
            elif not member.settled:
                self._change(name, settled=True, had_node=True)
        self.initialized = self.initialized or any(m.settled for m in self.members.values())

    def happen(self, what: str, which: int) -> None:
        """Something that nobody here has decided."""
        if what == "time":
            self.pass_time()
        elif what == "scale":
            self.wanted = 1 + which % 5
        elif what == "upgrade":
            for name in self.members:
                self._change(name, up_to_date=False)
        elif self.members:
            name = sorted(self.members)[which % len(self.members)]
            if what == "break":
                self._change(name, healthy=False)
            elif what == "condemn":
                self._change(name, healthy=False, condemned=True)
            elif what == "heal":
                self._change(name, healthy=True, condemned=False)
            elif what == "mark":
                self._change(name, unwanted=True)
            elif what == "delete":
                self._change(name, deleting=True)

    def heal(self) -> None:
        for name in self.members:
            self._change(name, healthy=True, condemned=False)

    def _create(self, step: Create) -> None:
        name = f"m{self.made:03}"
        self.made += 1
        self.members[name] = Member(
            name=name, created=name, domain=step.domain, settled=False, had_node=False
        )
        self.replacing = False
        self.most = max(self.most, len(self.members))

    def _change(self, name: str, **changes: bool) -> None:
        self.members[name] = replace(self.members[name], **changes)


def _check_creation(before: Situation) -> None:
    assert not any(m.deleting for m in before.members), "something leaves still"
    if before.replacing or not before.members:
        return
    assert all(m.sound for m in before.members), "something is not well"
    assert len(before.members) <= before.wanted, "one more than the surge"


def _check_removal(before: Situation, step: Remove) -> None:
    others = [m for m in before.members if m.name != step.name]
    assert not any(m.deleting for m in before.members), "two would leave at a time"
    if not others:
        assert not before.initialized, "the last member of a working control plane"
        return
    assert before.initialized
    assert sum(m.sound for m in others) >= quorum(len(others)), "the quorum would be lost"
    if step.cause != "remediating":
        assert all(m.sound for m in others)
        assert len(before.members) > before.wanted


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
                "condemn",
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
@given(wanted=st.integers(1, 5), events=EVENTS)
def test_no_quorum_is_lost_and_all_ends_well(wanted: int, events: list[tuple[str, int]]) -> None:
    """Proves: CP-31."""
    world = World(wanted)
    for what, which in events:
        world.step()
        world.happen(what, which)
    for _ in range(STEPS_TO_REST):
        world.heal()
        moved = world.step()
        world.pass_time()
        if not moved and not world.step() and not any(m.deleting for m in world.members.values()):
            break

    assert world.decide() == Decision()
    assert len(world.members) == world.wanted
    assert all(m.sound and m.up_to_date for m in world.members.values())
    assert world.most <= 6


@settings(max_examples=100, deadline=None)
@given(before=st.integers(1, 5), after=st.integers(1, 5))
def test_members_are_spread_evenly_after_every_scaling_and_rollout(before: int, after: int) -> None:
    """Proves: CP-24."""
    world = World(before)
    for change in (None, "scale", "upgrade"):
        if change is not None:
            world.happen(change, after - 1)
        for _ in range(STEPS_TO_REST):
            world.step()
            world.pass_time()
        counts = Counter(m.domain for m in world.members.values())
        assert max(counts.values()) - min(counts[name] for name in DOMAINS) <= 1


@settings(max_examples=100, deadline=None)
@given(wanted=st.integers(1, 5))
def test_a_rollout_replaces_every_machine_once(wanted: int) -> None:
    world = World(wanted)
    for change in (None, "upgrade"):
        if change is not None:
            world.happen(change, 0)
        for _ in range(STEPS_TO_REST):
            world.step()
            assert len(world.members) <= wanted + 1
            world.pass_time()

    assert world.made == 2 * wanted
