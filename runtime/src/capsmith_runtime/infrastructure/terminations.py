"""Machines that the author's code reports as Terminated, which other controllers then replace.

A single empty response from a cloud must not cost a server, and an outage must not cost a cluster.
A machine is therefore given up only after it has been checked a second time, and only while few of
its cluster's and its identity's machines disappear. Node health is independent of this: a
MachineHealthCheck that observes Nodes replaces Machines whose servers are really gone.

TerminalError needs no second check and has no limit: the author's code raises it for an explicit
answer about one machine, such as an invalid image, and not because a list lacks the machine.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from capsmith_runtime.contract import conditions, constants, metadata
from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.contract.times import parse_time
from capsmith_runtime.errors import TerminalError
from capsmith_runtime.identity.caches import BY_IDENTITY
from capsmith_runtime.infrastructure.caches import InfrastructureCaches
from capsmith_runtime.infrastructure.kinds import InfraMachineKind
from capsmith_runtime.kube.client import JSON, NamespacedName, key_of
from capsmith_runtime.kube.clock import monotonic
from capsmith_runtime.kube.controller import Result
from capsmith_runtime.kube.events import EventRecorder
from capsmith_runtime.reconcile.caches import BY_CLUSTER
from capsmith_runtime.reconcile.patcher import Patcher, ready
from capsmith_runtime.reconcile.results import Terminated
from capsmith_runtime.reconcile.status_reporter import StatusReporter, limit_message

SECOND_LOOK_DEBOUNCES: Final = 15.0
"""Delay of the second check, as a multiple of the status debounce: 30 seconds by default."""
WINDOW_SECONDS: Final = 600.0
"""Seconds for which a machine counts as disappeared after it was given up.

This is the default sync period, within which each machine of a cluster is checked: a shorter window
would miss an outage that is noticed only at resyncs.
"""
HOLD_SECONDS: Final = 3600.0
"""Seconds after which a machine that is still reported as Terminated is always given up."""
HELD_LOOK_SECONDS: Final = 60.0
_SHARE: Final = 3
"""Divisor for the share of machines that may be given up within the window: a third."""


@dataclass(frozen=True, slots=True)
class MachineGroup:
    """A cluster's or identity's machines, of which only a share may be given up at once."""

    name: str
    """Name of the group for messages, unique among all groups."""
    machines: int
    """Number of machines, including those that are not provisioned yet."""


@dataclass(slots=True)
class _Suspect:
    """A machine that was last reported as Terminated, and is not given up yet."""

    since: float
    groups: tuple[str, ...]
    held_since: float | None = None


class TerminationTracker:
    """Decides which terminated machines are given up; shared by all of a manager's kinds.

    A restart loses only state that the objects do not show: how long machines have been held, and
    which machines were given up and already deleted.  The condition of every other machine that was
    given up says when that happened.  It is read at the machine's first reconcile, while new
    suspects still wait for their second check.
    """

    def __init__(self, second_look: float, clock: Callable[[], float] = monotonic) -> None:
        """Initialise without machines; ``second_look`` is in seconds."""
        self._second_look = second_look
        self._clock = clock
        self._suspects: dict[Hashable, _Suspect] = {}
        self._suspected: Counter[str] = Counter()
        self._given_up: defaultdict[str, dict[Hashable, float]] = defaultdict(dict)
        # Machines that were given up, with the time at which that no longer counts, so that groups
        # that no longer exist are forgotten.
        self._ends: deque[tuple[float, str, Hashable]] = deque()

    def count_held(self) -> int:
        """Return the number of machines whose termination is currently held."""
        return sum(each.held_since is not None for each in self._suspects.values())

    def seconds_to_second_look(self, machine: Hashable, groups: Sequence[MachineGroup]) -> float:
        """Record that a machine is terminated, and return the seconds until the next check.

        Returns 0 if an earlier check had the same result and no other result has come since.
        """
        if machine not in self._suspects:
            names = tuple(group.name for group in groups)
            self._suspects[machine] = _Suspect(self._clock(), names)
            self._suspected.update(names)
        return max(0.0, self._suspects[machine].since + self._second_look - self._clock())

    def find_excess(self, machine: Hashable, groups: Sequence[MachineGroup]) -> MachineGroup | None:
        """Return a group that loses too many machines, or None if ``machine`` may be given up.

        A machine that was held for ``HOLD_SECONDS`` may always be given up. Call
        :meth:`seconds_to_second_look` first.
        """
        suspect, now = self._suspects[machine], self._clock()
        if suspect.held_since is not None and now - suspect.held_since >= HOLD_SECONDS:
            return None
        excess = next((group for group in groups if self._is_excessive(group)), None)
        if excess is None:
            suspect.held_since = None
        # Later checks keep the time: the hold must end although the machine is checked again and
        # again.
        elif suspect.held_since is None:
            suspect.held_since = now
        return excess

    def give_up(
        self, machine: Hashable, groups: Sequence[MachineGroup], seconds_ago: float = 0.0
    ) -> None:
        """Record that a terminated machine is given up, or was given up ``seconds_ago``."""
        # A machine that is given up is no longer a suspect: it would be counted twice.
        self.forget(machine)
        self._forget_old()
        if seconds_ago < WINDOW_SECONDS:
            now = self._clock()
            for group in groups:
                times = self._given_up[group.name]
                if machine not in times:
                    self._ends.append((now + WINDOW_SECONDS, group.name, machine))
                times[machine] = now - seconds_ago

    def forget(self, machine: Hashable) -> None:
        """Drop a machine that is not terminated, or that is being deleted."""
        suspect = self._suspects.pop(machine, None)
        for name in suspect.groups if suspect is not None else ():
            self._suspected[name] -= 1
            if not self._suspected[name]:
                del self._suspected[name]

    def _forget_old(self) -> None:
        """Drop the machines of all groups that were given up before the window."""
        now = self._clock()
        while self._ends and self._ends[0][0] <= now:
            _, name, machine = self._ends.popleft()
            times = self._given_up[name]
            end = times[machine] + WINDOW_SECONDS
            if end > now:
                # It was given up again since then.
                self._ends.append((end, name, machine))
                continue
            del times[machine]
            if not times:
                del self._given_up[name]

    def _is_excessive(self, group: MachineGroup) -> bool:
        start = self._clock() - WINDOW_SECONDS
        times = self._given_up.get(group.name, {})
        given_up = [machine for machine, time in times.items() if time > start]
        # A single machine may always be given up, even in a cluster of two. Suspects count as well:
        # in an outage all of them appear before the first is given up.
        allowed = max(1, group.machines // _SHARE)
        return len(given_up) + self._suspected[group.name] > allowed


class TerminatedMachines:
    """Handles machines of one kind for which the author's code returns Terminated."""

    def __init__(
        self,
        kind: InfraMachineKind,
        caches: InfrastructureCaches,
        tracker: TerminationTracker,
        events: EventRecorder,
        reporter: StatusReporter,
    ) -> None:
        self._kind = kind
        self._caches = caches
        self._tracker = tracker
        self._events = events
        self._reporter = reporter

    def forget(self, key: NamespacedName) -> None:
        """Drop a machine that is not terminated, or that is being deleted."""
        self._tracker.forget(self._machine(key))

    async def handle(self, patcher: Patcher, cluster: Cluster, terminated: Terminated) -> Result:
        """Give a machine up, or return when to check it again.

        If the machine is given up, the failure is reported and TerminalError is raised.
        """
        machine = self._machine(key_of(patcher.obj))
        groups, seconds_ago = tuple(self._groups(patcher.obj, cluster)), 0.0
        # Another manager may have given it up.
        if patcher.shows(constants.READY_CONDITION, status="False", reason=terminated.reason):
            seconds_ago = _seconds_since_transition(patcher.obj)
        else:
            left = self._tracker.seconds_to_second_look(machine, groups)
            if left > 0:
                return Result(left)
            excess = self._tracker.find_excess(machine, groups)
            if excess is not None:
                return await self._hold(patcher, terminated, excess)
        error = TerminalError(terminated.reason, terminated.message, status=terminated.status)
        # A machine whose report failed stays a suspect: given up and terminated again, it would
        # count twice, and be held back itself.
        await self._reporter.report_failure(patcher, error)
        self._tracker.give_up(machine, groups, seconds_ago)
        raise error

    async def _hold(self, patcher: Patcher, terminated: Terminated, excess: MachineGroup) -> Result:
        """Keep the status of the Ready condition, but change its reason: the machine is held."""
        reason = constants.REASON_TERMINATION_HELD
        message = limit_message(
            f"{terminated.reason}: {terminated.message}; not acted upon yet, because more than a"
            f" third of the machines of {excess.name} terminate"
        )
        shown = metadata.items(patcher.obj, "status", "conditions")
        condition = conditions.find(shown, constants.READY_CONDITION) or {}
        # One event for each hold, because a held machine is checked every minute.
        if condition.get("reason") != reason:
            self._events.warn(patcher.obj, reason, message)
        is_unknown = patcher.shows(constants.READY_CONDITION, status="Unknown")
        status = None if is_unknown else condition.get("status") == "True"
        await patcher.write_conditions(ready(status, reason, message))
        return Result(HELD_LOOK_SECONDS)

    def _groups(self, obj: JSON, cluster: Cluster) -> Iterator[MachineGroup]:
        name = f"{cluster.namespace}/{cluster.name}"
        yield MachineGroup(f"Cluster {name}", self._count(BY_CLUSTER, name))
        for identity in self._caches.identity.find_recorded_keys(obj):
            # The namespace is empty for a cluster-scoped identity.
            label = identity.replace("//", "/")
            yield MachineGroup(f"identity {label}", self._count(BY_IDENTITY, identity))

    def _count(self, index: str, value: str) -> int:
        informers = self._caches.machines.values()
        return sum(len(informer.keys_by_index(index, value)) for informer in informers)

    def _machine(self, key: NamespacedName) -> Hashable:
        return self._kind.resource.kind, key


def _seconds_since_transition(obj: JSON) -> float:
    """Return the seconds since Ready changed its status, or 0 if its time cannot be read."""
    shown = metadata.items(obj, "status", "conditions")
    condition = conditions.find(shown, constants.READY_CONDITION) or {}
    time = parse_time(condition.get("lastTransitionTime"))
    return 0.0 if time is None else max(0.0, (datetime.now(UTC) - time).total_seconds())
