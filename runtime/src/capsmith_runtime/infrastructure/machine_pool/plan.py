"""Plan which machines of a pool to create and delete next, from the existing machines alone.

The same machines in any order give the same plan, so an interrupted plan is continued by the next
one.  The plan does not depend on time, on the API server, or on earlier plans.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolMember:
    """One machine of a pool."""

    name: str
    number: int
    """Machines are numbered in the order of their creation; numbers are unique."""
    deleting: bool = False
    delete_requested: bool = False
    """Whether the user requests that it is deleted first (MP-10)."""
    unhealthy: bool = False
    """Whether a MachineHealthCheck requests its replacement."""
    outdated: bool = False
    """Whether it was created for another spec or version than the pool has now."""
    has_node: bool = False
    """Whether its Node exists."""
    failure_domain: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The next step; empty if there is nothing to do at the moment."""

    create: int = 0
    delete: tuple[PoolMember, ...] = ()


def plan(members: Sequence[PoolMember], desired: int | None) -> Plan:
    """Return the next step towards ``desired`` up-to-date machines; None changes nothing.

    Machines in deletion do not count: their replacements are created at once.
    """
    if desired is None:
        return Plan()
    alive = [member for member in members if not member.deleting]
    unhealthy = [member for member in alive if member.unhealthy]
    kept = [member for member in alive if not member.unhealthy]
    surplus = len(kept) - desired
    if surplus > 0:
        return Plan(delete=(*_sorted(unhealthy), *_deletion_order(kept)[:surplus]))
    if surplus < 0 or unhealthy:
        return Plan(create=-surplus, delete=_sorted(unhealthy))
    return Plan(delete=_outdated(kept, deleting=len(alive) < len(members)))


def spread(domains: Sequence[str], members: Sequence[PoolMember], count: int) -> list[str]:
    """Return failure domains for ``count`` new machines: the least loaded, the first of equals.

    Return empty texts if there are no failure domains.
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


def _outdated(members: Sequence[PoolMember], *, deleting: bool) -> tuple[PoolMember, ...]:
    """Return the machines to replace next: one with a Node, if no other machine is missing.

    Outdated machines without a Node come first: replacing them reduces no capacity.
    """
    outdated = _sorted([member for member in members if member.outdated])
    missing = [member for member in outdated if not member.has_node]
    if missing:
        return tuple(missing)
    if deleting or not outdated or any(not member.has_node for member in members):
        return ()
    return (min(outdated, key=lambda member: (not member.delete_requested, member.number)),)


def _sorted(members: Sequence[PoolMember]) -> tuple[PoolMember, ...]:
    return tuple(sorted(members, key=lambda member: (member.number, member.name)))
