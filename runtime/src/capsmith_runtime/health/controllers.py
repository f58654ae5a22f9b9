"""Runs the author's health checks in a manager."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from capsmith_runtime.health.api import HealthChecks
from capsmith_runtime.kube.log import get_logger
from capsmith_runtime.reconcile.caches import Caches
from capsmith_runtime.reconcile.context import ControllerContext
from capsmith_runtime.reconcile.groups import ControllerGroup, Runnable
from capsmith_runtime.reconcile.session_tasks import PeriodicCheck, ReadinessCheck

_log = get_logger("liveness")

FAILURES: Final = 3
"""Number of consecutive failures after which a liveness check fails."""


class LivenessCheck(PeriodicCheck):
    """Check that fails after several consecutive failures, if it has succeeded before."""

    def __init__(self, checks: HealthChecks) -> None:
        super().__init__(type(checks).__name__, checks.livez)
        self._has_succeeded = False
        self._failures = 0

    def is_alive(self) -> bool:
        """Return whether the manager is alive; otherwise, it must be restarted."""
        # A check that has failed since the start would restart the manager forever, because no
        # restart repairs its fault.
        return not self._has_succeeded or self._failures < FAILURES

    def report(self, problem: str | None) -> None:
        """Count a failure, or forget earlier failures after a success."""
        if problem is None:
            self._has_succeeded, self._failures = True, 0
            return
        self._failures += 1
        if self._failures == 1 or self._failures == FAILURES:
            _log.warning(
                "liveness check failed",
                check=self.name,
                error=problem,
                failures=self._failures,
                restart=not self.is_alive(),
            )


class HealthCheckGroup(ControllerGroup):
    """Runs the author's liveness and readiness checks in one manager."""

    def __init__(self, checks: HealthChecks) -> None:
        self._liveness = LivenessCheck(checks)
        self._readiness = ReadinessCheck(type(checks).__name__, checks.readyz)

    @property
    def healthy(self) -> bool:
        """Return whether the liveness check passes."""
        return self._liveness.is_alive()

    @property
    def readiness_checks(self) -> Sequence[ReadinessCheck]:
        """Return a tuple with the author's readiness check as its only item."""
        return (self._readiness,)

    @property
    def runnables(self) -> Sequence[Runnable]:
        """Return the task that runs the liveness check."""
        return (self._liveness.run,)


@dataclass(frozen=True, slots=True)
class HealthCheckFactory:
    """Creates a manager's health checks from the author's class."""

    checks: type[HealthChecks]

    def __call__(self, caches: Caches, context: ControllerContext) -> HealthCheckGroup:
        """Return the group that runs the checks."""
        return HealthCheckGroup(self.checks())
