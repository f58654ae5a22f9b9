"""Liveness checks of authors: three failures in succession, of a check that has succeeded."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from capsmith_runtime.health import HealthChecks
from capsmith_runtime.health.controllers import HealthCheckFactory, HealthCheckGroup
from capsmith_runtime.kube.handler_calls import DaemonThreadPool
from capsmith_runtime.testing import clock


class _Checks(HealthChecks):
    def __init__(self) -> None:
        self.problem: str | None = None
        self.hangs = False

    async def livez(self) -> None:
        if self.hangs:
            await asyncio.Event().wait()
        if self.problem is not None:
            raise RuntimeError(self.problem)

    def readyz(self) -> None:
        if self.problem is not None:
            raise RuntimeError(self.problem)


def _run(checks: _Checks, scenario: Callable[[HealthCheckGroup], Awaitable[None]]) -> None:
    async def main() -> None:
        asyncio.get_running_loop().set_default_executor(DaemonThreadPool(1))
        group = HealthCheckGroup(checks)
        runs = [*group.runnables, *(check.run for check in group.readiness_checks)]
        tasks = [asyncio.create_task(run()) for run in runs]
        try:
            await scenario(group)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    clock.run(main())


def test_three_failures_in_succession_restart_the_manager() -> None:
    checks = _Checks()

    async def scenario(group: HealthCheckGroup) -> None:
        await asyncio.sleep(5)
        (readiness,) = group.readiness_checks
        assert group.healthy
        assert readiness.is_ready()
        checks.problem = "the collector has ended"
        await asyncio.sleep(20)
        assert (group.healthy, readiness.is_ready()) == (True, False), "after two failures"
        checks.problem = None
        await asyncio.sleep(10)
        checks.problem = "the collector has ended again"
        await asyncio.sleep(20)
        assert group.healthy, "after two failures since the last success"
        await asyncio.sleep(10)
        assert (group.healthy, readiness.is_ready()) == (False, False)
        checks.problem = None
        await asyncio.sleep(10)
        assert (group.healthy, readiness.is_ready()) == (True, True)

    _run(checks, scenario)


def test_a_check_that_hangs_fails() -> None:
    checks = _Checks()

    async def scenario(group: HealthCheckGroup) -> None:
        await asyncio.sleep(5)
        checks.hangs = True
        await asyncio.sleep(60)
        assert not group.healthy

    _run(checks, scenario)


def test_a_check_that_has_never_succeeded_restarts_nothing() -> None:
    checks = _Checks()
    checks.problem = "the last restart did not mend this"

    async def scenario(group: HealthCheckGroup) -> None:
        await asyncio.sleep(120)
        assert group.healthy
        (readiness,) = group.readiness_checks
        assert not readiness.is_ready()

    _run(checks, scenario)


def test_each_manager_has_its_own_instance() -> None:
    factory = HealthCheckFactory(_Checks)
    first, second = (factory.checks() for _ in range(2))
    assert first is not second
