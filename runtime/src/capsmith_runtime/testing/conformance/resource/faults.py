"""Crashes and rejected requests, which must not lose or duplicate a resource's infrastructure."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from capsmith_runtime.errors import create_api_error
from capsmith_runtime.kube.client import JSON
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.resource.base import ResourceConformance
from capsmith_runtime.testing.resource.environment import BaseResourceEnvironment


class TestResourceFaults(ResourceConformance):
    """Crashes and rejected requests, which must not lose or duplicate infrastructure."""

    @pytest.mark.parametrize("arrives", [True, False], ids=["after", "before"])
    @scenario
    async def test_a_crash_at_any_write_loses_and_duplicates_nothing(
        self, env: BaseResourceEnvironment, arrives: bool
    ) -> None:
        """If a manager crashes at any write, no infrastructure is lost or duplicated.

        The test makes managers crash at each kind of write in a resource's lifecycle.

        Proves: SM-08, SM-09.
        """
        crash = _Crash(env.kind.resource.kind, arrives)
        env.api.fault = crash
        env.add()
        while not await _reached(env, crash, lambda: env.ready() == ("True", "Ready")):
            await env.restart()
        await env.quiet()
        env.check_created()
        # A kind whose CRD has no status gets only its finalizer.
        assert len(crash.seen) >= (2 if env.has_conditions(env.resource()) else 1)

        env.delete()
        while not await _reached(env, crash, lambda: env.found() is None):
            await env.restart()
        assert env.existing() == []

    @scenario
    async def test_the_finalizer_comes_before_the_first_side_effect(
        self, env: BaseResourceEnvironment
    ) -> None:
        """No infrastructure is created before the finalizer is written.

        Proves: SM-08.
        """
        tried = asyncio.Event()

        def refuse(verb: str, kind: str, body: JSON) -> None:
            if kind == env.kind.resource.kind and "finalizers" in body.get("metadata", {}):
                tried.set()
                raise create_api_error(500, "InternalError", "no finalizer for now")

        env.api.fault = refuse
        env.add()
        await env.eventually("the finalizer is tried", tried.is_set)
        await env.quiet()
        assert env.existing() == []
        env.api.fault = None
        await env.is_ready()

    @scenario
    async def test_other_writers_are_no_trouble(self, env: BaseResourceEnvironment) -> None:
        refused = 0

        def refuse(verb: str, kind: str, body: JSON) -> None:
            nonlocal refused
            if kind == env.kind.resource.kind and refused < 4:
                refused += 1
                raise create_api_error(409, "Conflict", "another client was faster")

        env.api.fault = refuse
        env.add()
        await env.is_ready()
        assert refused == 4
        env.check_created()


class _Crash:
    """Stops the manager once at each kind of write, before it arrives or before its response."""

    def __init__(self, kind: str, arrives: bool) -> None:
        self._kind = kind
        self._arrives = arrives
        self.seen: set[tuple[str, ...]] = set()
        self.happened = False

    def __call__(self, verb: str, kind: str, body: JSON) -> None:
        write = (verb, *sorted(body), *sorted(body.get("metadata", {})))
        if kind != self._kind or write in self.seen:
            return
        self.seen.add(write)
        self.happened = True
        if not self._arrives:
            raise create_api_error(500, "InternalError", "the connection was lost")


async def _reached(env: BaseResourceEnvironment, crash: _Crash, holds: Callable[[], bool]) -> bool:
    """Wait for a state, or return False if the manager must be killed first."""
    await env.eventually("the next write, or the end", lambda: crash.happened or holds())
    happened, crash.happened = crash.happened, False
    return not happened
