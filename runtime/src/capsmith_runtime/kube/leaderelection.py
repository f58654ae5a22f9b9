"""Leader election with a Lease (coordination.k8s.io/v1).

A process decides by its own clock whether a lease has expired: it measures for how long it has seen
the lease unchanged. The times in the lease are for display only, because the clocks of machines
differ.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
import socket
import sys
import threading
import time
import traceback
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime

from capsmith_runtime.errors import AlreadyExistsError, ApiError, ConflictError, NotFoundError
from capsmith_runtime.kube.client import JSON, KubeClient, NamespacedName, ResourceType
from capsmith_runtime.kube.log import get_logger
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.kube.process import (
    EndProcess,
    SetAlarm,
    run_briefly,
    seconds_until,
    set_no_alarm,
)

LEASE = ResourceType("coordination.k8s.io", "v1", "Lease", "leases")

_log = get_logger("leader")
# This clock also advances while the machine is suspended, if the system supports that.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class LeadershipLost(Exception):
    """Raised if the lease is lost: another process may lead, so stop working immediately."""


@dataclass(frozen=True, slots=True)
class LeaseTimings:
    """Lease times in seconds.

    `duration` > `renew_deadline` > `retry` must hold, because otherwise two processes may lead.
    """

    duration: float = 15.0
    renew_deadline: float = 10.0
    retry: float = 2.0

    def __post_init__(self) -> None:
        if not self.duration > self.renew_deadline > self.retry > 0:
            raise ValueError("lease duration > renew deadline > retry period > 0 is required")


class LeaderElector:
    """Elects a leader: call `acquire`, then `hold` during the work, then `release`."""

    def __init__(
        self,
        client: KubeClient,
        key: NamespacedName,
        identity: str,
        metrics: Metrics,
        *,
        timings: LeaseTimings = LeaseTimings(),
        set_alarm: SetAlarm = set_no_alarm,
    ) -> None:
        self._client = client
        self._key = key
        self._identity = identity
        self._metrics = metrics
        self._leads = metrics.leader_of.labels(key.name)
        self.timings = timings
        self._set_alarm = set_alarm
        self._lease: JSON | None = None
        self._observed: tuple[str, float] = ("", 0.0)
        self._renewed = 0.0
        self._acquired = False
        self._may_be_ours = False
        """Whether a request for the lease was sent whose response has not arrived."""

    @property
    def is_overdue(self) -> bool:
        """Return whether a held lease was not renewed in time and will expire soon.

        Thread-safe.

        It becomes true halfway between the renew deadline, at which `hold` raises unless the event
        loop is blocked, and the end of the lease, after which other processes take over.
        """
        limit = (self.timings.renew_deadline + self.timings.duration) / 2
        return self._acquired and _now() > self._renewed + limit

    async def acquire(self) -> None:
        """Wait until this process holds the lease; log and retry failed requests."""
        _log.info("waiting for the lease", lease=str(self._key), identity=self._identity)
        while True:
            try:
                async with asyncio.timeout(self.timings.renew_deadline):
                    if await self._try_acquire():
                        break
            except NotFoundError as error:
                hint = f"kubectl create namespace {self._key.namespace}"
                _log.warning("cannot create the lease", error=str(error), hint=hint)
            except (ApiError, TimeoutError) as error:
                _log.warning("cannot read or take the lease", error=repr(error))
            # With jitter, so that the replicas of a Deployment do not send their requests in step.
            await asyncio.sleep(self.timings.retry * random.uniform(1.0, 1.2))
        self._metrics.leader.set(1)
        self._leads.set(1)
        _log.info("leading", lease=str(self._key), identity=self._identity)

    async def hold(self) -> None:
        """Renew the lease until cancelled.

        Raises LeadershipLost if another process holds the lease, or if the lease could not be
        renewed within the renew deadline. The caller must then stop working immediately, and must
        not release the lease.
        """
        try:
            while True:
                left = self._renewed + self.timings.renew_deadline - _now()
                await asyncio.sleep(min(self.timings.retry, max(left, 0.0)))
                await self._renew()
        except LeadershipLost:
            self._acquired = False  # the lease must not be released: handlers may still run
            raise
        finally:
            self._metrics.leader.set(0)
            self._leads.set(0)

    async def release(self) -> None:
        """Release the lease, so that the next leader need not wait until it expires.

        Call this only when all work has stopped, including threads: another process may lead as
        soon as the request is processed. Does nothing if the lease is neither held nor requested.
        """
        if self._may_be_ours:
            self._lease = None  # read it again
        elif not self._acquired:
            return
        self._acquired = self._may_be_ours = False
        # All work has ended, so the alarm has nothing left to stop, even if another process leads
        # before the response arrives.
        self._set_alarm(0.0)
        try:
            async with asyncio.timeout(self.timings.retry):
                await self._give_up()
        except (ApiError, TimeoutError) as error:
            _log.warning("cannot release the lease", error=repr(error))

    async def _give_up(self) -> None:
        for _ in range(2):
            if self._lease is None:
                await self._read()
            lease, self._lease = self._lease, None
            if lease is None or not self._is_ours(lease):
                return
            # As client-go does; the API server rejects a duration of 0.
            spec = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": _micro_time()}
            # A cancelled renewal may have reached the server: read the lease again.
            with contextlib.suppress(ConflictError):
                await self._write(lease, spec)
                return

    async def _renew(self) -> None:
        """Renew the lease, retrying until the renew deadline."""
        deadline = self._renewed + self.timings.renew_deadline
        while True:
            left = deadline - _now()
            if left <= 0:
                raise LeadershipLost(f"not renewed for {self.timings.renew_deadline:g} s")
            try:
                # Half of the deadline, so that a request on a dead connection leaves time for
                # another one.
                async with asyncio.timeout(min(left, self.timings.renew_deadline / 2)):
                    if await self._try_renew():
                        return
            except (ApiError, TimeoutError) as error:
                _log.warning("cannot renew the lease", error=repr(error))
            await asyncio.sleep(min(max(deadline - _now(), 0.0), self.timings.retry / 2))

    async def _try_renew(self) -> bool:
        # Count from before the request: others see the renewal no earlier than that, so this
        # process never believes that it holds the lease for longer than they do.
        began = _now()
        if self._lease is None:
            await self._read()
        lease = self._lease
        if lease is None or not self._is_ours(lease):
            holder = lease["spec"].get("holderIdentity") if lease else "none"
            raise LeadershipLost(f"{holder} holds the lease")
        try:
            self._lease = await self._write(lease, {"renewTime": _micro_time()})
        except (ConflictError, NotFoundError):
            self._lease = None  # changed by another process: read it before the next attempt
            return False
        self._was_renewed(began)
        return True

    async def _try_acquire(self) -> bool:
        began = _now()
        await self._read()
        lease = self._lease
        self._may_be_ours = lease is None or self._is_free(lease)
        if not self._may_be_ours:
            return False
        try:
            if lease is None:
                self._lease = await self._client.create(LEASE, self._new_lease())
            else:
                self._lease = await self._write(lease, self._claim(lease))
        except (ConflictError, AlreadyExistsError):
            self._may_be_ours = False
            return False
        self._acquired, self._may_be_ours = True, False
        self._was_renewed(began)
        return True

    def _was_renewed(self, began: float) -> None:
        """Schedule the process's end for the time when others may consider the lease expired.

        ``began`` is the time at which the renewal was requested.
        """
        self._renewed = began
        self._set_alarm(seconds_until(began + self.timings.duration, _now()))

    async def _read(self) -> None:
        try:
            self._lease = await self._client.get(LEASE, self._key)
        except NotFoundError:
            self._lease = None
            return
        self._lease.setdefault("spec", {})
        # Any write of the holder changes the version.  Its times are not compared with this clock.
        version = self._lease["metadata"]["resourceVersion"]
        if version != self._observed[0]:
            self._observed = (version, _now())

    def _is_ours(self, lease: JSON) -> bool:
        return bool(lease["spec"].get("holderIdentity") == self._identity)

    def _is_free(self, lease: JSON) -> bool:
        spec = lease["spec"]
        # The identity contains a random UUID: a lease that has it was taken by a request of this
        # process whose response was lost.
        if spec.get("holderIdentity") in (None, "", self._identity):
            return True
        # Use the holder's duration, as client-go does: during an upgrade the managers may have
        # different flags.
        duration = spec.get("leaseDurationSeconds") or self.timings.duration
        return _now() > self._observed[1] + float(duration)

    def _claim(self, lease: JSON) -> JSON:
        now, spec = _micro_time(), lease["spec"]
        # A new term of the same holder is not a transition, as in client-go.
        taken = spec.get("holderIdentity") != self._identity
        return {
            "holderIdentity": self._identity,
            # The API has whole seconds. With fewer than the holder counts on, two would lead.
            "leaseDurationSeconds": math.ceil(self.timings.duration),
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": (spec.get("leaseTransitions") or 0) + int(taken),
        }

    def _new_lease(self) -> JSON:
        return {
            "apiVersion": LEASE.api_version,
            "kind": LEASE.kind,
            "metadata": {"namespace": self._key.namespace, "name": self._key.name},
            "spec": {**self._claim({"spec": {}}), "leaseTransitions": 0},
        }

    async def _write(self, lease: JSON, spec: JSON) -> JSON:
        # Compare and swap: of two processes that read the same lease, only one can write it.
        # An update as in client-go, so that the usual role for leases allows it.
        return await self._client.update(LEASE, {**lease, "spec": {**lease["spec"], **spec}})


def create_identity() -> str:
    """Return a name for this process that no other process has."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


def _now() -> float:
    return time.clock_gettime(_CLOCK)


def _micro_time() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


# The event loop renews the lease, and notices when that fails.  A blocking call in an asynchronous
# handler stops both, so another thread watches.
class LeaseWatchdog:
    """Kills the process if it is still running after it failed to renew its lease in time.

    A thread watches an elector's lease between `start` and `stop`.
    """

    def __init__(self, elector: LeaderElector, end_process: EndProcess) -> None:
        self._elector = elector
        self._end_process = end_process
        self._stopped = threading.Event()
        self._loop_thread: int | None = None

    def start(self) -> None:
        """Start the thread; call this from the event loop's thread."""
        self._loop_thread = threading.get_ident()
        threading.Thread(target=self._run, name="lease-watchdog", daemon=True).start()

    def stop(self) -> None:
        """Tell the thread to stop, without waiting for it."""
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.wait(self._elector.timings.retry / 2):
            if self._elector.is_overdue:
                try:
                    # The report may fail or block: the process must end in any case before the
                    # lease does.
                    run_briefly(self._report)
                finally:
                    self._end_process(1)
                return

    def _report(self) -> None:
        frame = sys._current_frames().get(self._loop_thread or 0)
        stack = "".join(traceback.format_stack(frame)) if frame else ""
        _log.error(
            "the event loop is blocked, and the lease was not renewed: the process ends",
            stack=stack,
        )
