"""Plans which machines of a pool to create and delete next.

A plan depends only on the existing machines, in any order, the desired state and the limits of a
rollout. It does not depend on time, on the API server, or on earlier plans, so after an
interruption the next plan simply takes its place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

MAX_CREATED: Final = 100
"""Maximum number of machines that one step creates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolMember:
    """A machine in a pool, with the properties that decide what to create or delete next."""

    name: str
    number: int
    """The machine's number: unique in its pool, and increasing in the order of creation."""
    deleting: bool = False
    delete_requested: bool = False
    """Whether the user has requested that this machine is deleted first (MP-10)."""
    unhealthy: bool = False
    """Whether a MachineHealthCheck has requested that the machine is replaced."""
    outdated: bool = False
    """Whether the machine was created from an earlier spec or version of its pool."""
    has_node: bool = False
    """Whether the machine's Node exists."""
    failure_domain: str = ""


@dataclass(frozen=True, slots=True)
class Rollout:
    """Limits on how far a rollout may deviate from the desired number of machines."""

    surge: int = 0
    """Maximum number of machines beyond the desired number."""
    unavailable: int = 1
    """Maximum number of machines that may be without a Node."""

    @classmethod
    def of(cls, max_surge: int | str, max_unavailable: int | str, desired: int) -> Rollout:
        """Resolve counts and percentages of ``desired``, as core does for MachineDeployments.

        A percentage is rounded up for the surge and down for unavailable machines; if both are 0,
        one machine may be unavailable. Raises ValueError for a negative number, or for a string
        that is not a percentage.
        """
        surge = _number(max_surge, desired, up=True)
        unavailable = _number(max_unavailable, desired, up=False)
        return cls(surge, unavailable if surge or unavailable else 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The next step: the machines to create and delete, if anything can be done yet."""

    create: int = 0
    delete: tuple[PoolMember, ...] = ()


def plan(
    members: Sequence[PoolMember], desired: int | None, rollout: Rollout | None = None
) -> Plan:
    """Return the next step towards ``desired`` up-to-date machines.

    If ``desired`` is None, nothing is created or deleted.  Machines that are being deleted do not
    count, so their replacements are created immediately.  A rollout first creates the machines that
    the surge allows, and then deletes outdated ones.
    """
    if desired is None:
        return Plan()
    rollout = rollout or Rollout()
    alive = [member for member in members if not member.deleting]
    unhealthy = [member for member in alive if member.unhealthy]
    kept = [member for member in alive if not member.unhealthy]
    outdated = sum(member.outdated for member in kept)
    # At most as many as there are machines to replace: the rest would be deleted again.
    allowed = desired + min(rollout.surge, outdated, desired)
    if len(kept) > allowed:
        surplus = _deletion_order(kept)[: len(kept) - allowed]
        return Plan(delete=(*_sorted(unhealthy), *surplus))
    missing = min(allowed - len(kept), max(desired - (len(kept) - outdated), 0))
    # Outdated machines stay until the new ones have Nodes: deleting both in one step would exceed
    # `unavailable`.
    if missing or unhealthy:
        # In a step for thousands, a change of the number would not be seen until they all exist.
        return Plan(create=min(missing, MAX_CREATED), delete=_sorted(unhealthy))
    # Machines in deletion are being drained: each of them already counts as unavailable.
    spare = sum(member.has_node for member in kept) - (desired - rollout.unavailable)
    return Plan(delete=_outdated(kept, spare - (len(members) - len(alive))))


def assign_failure_domains(
    domains: Sequence[str], members: Sequence[PoolMember], count: int
) -> list[str]:
    """Return failure domains for ``count`` new machines, choosing the least loaded each time.

    Among equally loaded domains, the first is chosen. If there are no failure domains, the strings
    are empty.
    """
    if not domains:
        return [""] * count
    load = Counter(member.failure_domain for member in members if not member.deleting)
    chosen = []
    for _ in range(count):
        domain = min(domains, key=lambda name: load[name])
        load[domain] += 1
        chosen.append(domain)
    return chosen


def _deletion_order(members: Sequence[PoolMember]) -> list[PoolMember]:
    """Return the machines in the order of deletion (MP-10).

    Among equals, the newest machine of the fullest failure domain comes first.
    """
    ranks: Counter[str] = Counter()
    depth = {}
    for member in _sorted(members):
        ranks[member.failure_domain] += 1
        depth[member.name] = ranks[member.failure_domain]
    return sorted(
        members,
        key=lambda m: (
            not m.delete_requested,
            not m.outdated,
            m.has_node,
            -depth[m.name],
            -m.number,
            m.name,
        ),
    )


def _outdated(members: Sequence[PoolMember], spare: int) -> tuple[PoolMember, ...]:
    """Return the outdated machines to replace next, at most ``spare`` of which have a Node.

    Outdated machines without a Node come first: replacing them reduces no capacity.
    """
    outdated = _sorted([member for member in members if member.outdated])
    without_node = [member for member in outdated if not member.has_node]
    if without_node:
        return tuple(without_node)
    in_order = sorted(outdated, key=lambda member: (not member.delete_requested, member.number))
    return tuple(in_order[: max(0, spare)])


def _number(limit: int | str, desired: int, *, up: bool) -> int:
    text = str(limit)
    digits = text.removesuffix("%")
    # isdecimal alone also accepts digits of other scripts, which int() would read.
    if not (digits.isascii() and digits.isdecimal()):
        raise ValueError(f"{limit!r} is neither a number of machines nor a percentage")
    if digits == text:
        return int(digits)
    share = int(digits) * desired
    return -(-share // 100) if up else share // 100


def _sorted(members: Sequence[PoolMember]) -> tuple[PoolMember, ...]:
    return tuple(sorted(members, key=lambda member: (member.number, member.name)))
