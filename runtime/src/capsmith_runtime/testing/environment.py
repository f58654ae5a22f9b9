"""A fake management cluster in which a component's real manager runs."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Self

from capsmith_runtime.component import Component
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.kube.log import TextFormatter
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.manager import Manager
from capsmith_runtime.options import Options
from capsmith_runtime.testing import clock
from capsmith_runtime.testing.blocking_calls import find_blocking_calls
from capsmith_runtime.testing.fake_api import FakeApi
from capsmith_runtime.testing.limits import SCENARIO_WAITS, limits
from capsmith_runtime.testing.provider import ProviderUnderTest, slice_of
from capsmith_runtime.testing.secret_values import SecretValueDetector, find_secret_values

DEBOUNCE_SECONDS = 0.15
QUIET_TURN_SECONDS = 0.01
QUIET_TURNS = 25
"""Number of consecutive turns without a request before the manager counts as quiet.

These turns last longer than statuses are debounced.
"""
READS = ("get", "list")
BUSY_WRITES = 200
"""Writes of one object until it counts as endlessly busy: many more than retries with back-off."""
LOG_LINES = 15
"""Number of lines of the log that a failure shows."""


class _LastRecords(logging.Handler):
    """Keeps the latest log records while it is used as a context manager."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._records: deque[logging.LogRecord] = deque(maxlen=LOG_LINES)

    def __enter__(self) -> Self:
        logging.getLogger().addHandler(self)
        return self

    def __exit__(self, *exc: object) -> None:
        logging.getLogger().removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self._records.append(record)

    def text(self) -> str:
        """Return the lines as a manager logs them, with their fields."""
        return "\n".join(map(TextFormatter().format, self._records))


class TestEnvironment:
    """A component's manager and its fake API server.

    Use it as an asynchronous context manager, or through ``run``.  All times are on a virtual clock
    (see :mod:`capsmith_runtime.testing.clock`).
    """

    __test__ = False

    def __init__(
        self, provider: ProviderUnderTest, component: Component, core_version: str
    ) -> None:
        self.provider = provider
        self.manifests = provider.manifests
        self.component = without_migration(component)
        self.api = FakeApi(core_version, self.manifests)
        self.api.field_manager = component.label
        self.metrics = Metrics()
        """Metrics of the manager that is running, or that ran last."""
        self._stop = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    @property
    def contract(self) -> str:
        """Return the contract version that the provider serves."""
        return self.manifests.contract

    @property
    def is_old_core(self) -> bool:
        """Return whether core serves its objects only in version v1beta1."""
        return self.api.core_version == "v1beta1"

    def run(self, scenario: Callable[[], Awaitable[None]]) -> None:
        """Run a scenario in this environment on a virtual clock.

        A failure has a note with all objects' statuses and the last lines of the log.
        """
        log = _LastRecords()

        async def bounded() -> None:
            seconds = limits().wait_seconds
            bound = asyncio.timeout(SCENARIO_WAITS * seconds)
            report = ""
            try:
                async with bound, self:
                    try:
                        await scenario()
                    except (Exception, asyncio.CancelledError):
                        # Before the manager is stopped, which changes conditions.
                        report = f"{self.state()}\n{log.text()}"
                        raise
            except TimeoutError as error:
                if not bound.expired():
                    raise
                message = f"not ended within {SCENARIO_WAITS} times wait_seconds={seconds:g}"
                failure = AssertionError(f"{message}\n{limits().hint('wait_seconds')}")
                failure.add_note(report)
                raise failure from error
            except Exception as error:
                error.add_note(report)
                raise

        find_blocking_calls()
        with log, SecretValueDetector(self.secret_values()) as secret_values:
            clock.run(bounded())
        _check_blocking_calls(find_blocking_calls())
        secret_values.look_into(self.api.all_states())
        secret_values.check()

    def secret_values(self) -> Mapping[str, str]:
        """Return the values that no one may read in a log or status, each with its description."""
        return find_secret_values(self.manifests)

    def start(self, *, extra: Mapping[str, object] | None = None, **changes: Any) -> None:
        """Start the component's manager; ``changes`` replace its options."""
        options = self.options()
        options = replace(
            options,
            status_debounce=DEBOUNCE_SECONDS,
            extra={**options.extra, **(extra or {})},
            **changes,
        )
        self._stop = asyncio.Event()
        self.metrics = Metrics()
        manager = Manager(self.component, options, self.api, self.metrics, keep_process)
        self._running = asyncio.create_task(manager.run(self._stop))

    def options(self) -> Options:
        """Return the manager's options; ``start`` adds others."""
        return Options(own_namespace=self.component.namespace, diagnostics_address="127.0.0.1:0")

    async def stop(self) -> None:
        """Stop the manager as a signal would, and wait until it has stopped."""
        if self._running is not None:
            self._stop.set()
            await self._running
            self._running = None

    async def kill(self) -> None:
        """Stop the manager as if its process had been killed.

        Waits at most ``wait_seconds`` for author calls that run in threads to finish.
        """
        if self._running is None:
            return
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)
        self._running = None
        # A process's threads end with it. Here they continue, and a server that one of them creates
        # after the next manager has deleted it would be a leak that no real crash causes.
        loop = asyncio.get_running_loop()
        end = loop.time() + limits().wait_seconds
        while _has_handlers(loop) and loop.time() < end:
            await asyncio.sleep(QUIET_TURN_SECONDS)

    async def restart(self) -> None:
        """Kill the manager and start another one, which has no state in memory."""
        await self.kill()
        self.start()

    async def eventually(self, what: str, holds: Callable[[], Any]) -> None:
        """Wait until ``holds`` returns a true value; ``what`` describes it in failure messages.

        Fails if that takes too long, or if the manager stops first.
        """
        loop = asyncio.get_running_loop()
        assert isinstance(loop, clock.VirtualLoop), "this needs the virtual clock"
        seconds = limits().wait_seconds
        ended = "the manager has ended"

        def is_over() -> object:
            found = holds()
            assert found or self._running is None or not self._running.done(), ended
            return found

        assert await loop.wait_until(
            is_over, loop.time() + seconds
        ), f"not within wait_seconds={seconds:g}: {what}\n{limits().hint('wait_seconds')}"

    async def quiet(self) -> None:
        """Wait until the manager has stopped sending requests and no handler is running.

        Turns of the event loop are counted, not seconds: on a busy machine time passes while the
        manager makes no progress.
        """
        loop = asyncio.get_running_loop()
        count, turns, counted = -1, 0, len(self.api.requests)
        writes: Counter[tuple[str, str, NamespacedName]] = Counter()
        end = loop.time() + limits().wait_seconds
        while turns < QUIET_TURNS:
            if len(self.api.requests) != count or _has_handlers(loop):
                count, turns = len(self.api.requests), 0
                writes.update(each for each in self.api.requests[counted:] if each[0] not in READS)
                counted = count
                _check_repetitions(writes)
            assert loop.time() < end, f"still busy after wait_seconds: {self.api.requests[-10:]}"
            await asyncio.sleep(QUIET_TURN_SECONDS)
            turns += 1

    def asked(self) -> list[tuple[str, str, NamespacedName]]:
        """Return the manager's API requests as (verb, kind, key), except those for CRDs."""
        return [each for each in self.api.requests if each[1] != "CustomResourceDefinition"]

    def has_conditions(self, obj: JSON) -> bool:
        """Return whether one of the provider's objects can have conditions.

        CRDs that existed before capsmith may lack them; in that case, the manager writes none.
        """
        return self.has_field(obj, "status", "conditions")

    def has_field(self, obj: JSON, *steps: str) -> bool:
        """Return whether the CRD for one of the provider's objects has a field.

        ``steps`` are the names of the field and of the objects that contain it, outermost first.
        """
        schema = self.manifests.schema(obj["kind"], obj["apiVersion"].rpartition("/")[2])
        for name in steps:
            fields = schema.get("properties", {})
            if name not in fields:
                return False
            schema = fields[name]
        return True

    def shows(self, obj: JSON, name: str, status: str, reason: str | None = None) -> bool:
        """Return whether a condition has this status and, unless it is None, this reason.

        What objects of the kind cannot have, conditions or their reasons, is not compared.
        """
        if not self.has_conditions(obj):
            return True
        found = condition(obj, name)
        return found[0] == status and (reason in (None, found[1]) or not self._has_reasons(obj))

    def _has_reasons(self, obj: JSON) -> bool:
        schema = self.manifests.schema(obj["kind"], obj["apiVersion"].rpartition("/")[2])
        conditions = schema["properties"]["status"]["properties"]["conditions"]
        properties = conditions.get("items", {}).get("properties")
        return properties is None or "reason" in properties

    def state(self) -> str:
        """Return all objects' statuses, for a failing test's message."""
        return "\n".join(
            f"{obj['kind']} {obj['metadata']['name']}: {obj['status']}"
            for obj in self.api.everything()
            if "status" in obj
        )


def _check_blocking_calls(found: list[str]) -> None:
    """Fail if asynchronous code of the author has blocked the event loop."""
    assert not found, (
        "the whole manager waits while these calls last:\n  " + "\n  ".join(found) + "\nCall them"
        " from a method that is `def`, not `async def`, or with asyncio.to_thread."
    )


def _check_repetitions(writes: Counter[tuple[str, str, NamespacedName]]) -> None:
    """Fail if one object is written so often that each write seems to lead to the next one."""
    for (_, kind, key), times in writes.most_common(1):
        assert times < BUSY_WRITES, (
            f"{kind} {key.name} is written again and again, {times} times in succession: return the"
            " same result for as long as it is valid"
        )


def keep_process(code: int) -> None:
    """Do nothing instead of exiting the process, which also runs the tests."""


def without_migration(component: Component) -> Component:
    """Return a component that does not migrate stored objects.

    Only scenarios about the migration itself need it.
    """
    groups = tuple(group for group in component.groups if slice_of(group) != "migration")
    return replace(component, groups=groups)


def _has_handlers(loop: asyncio.AbstractEventLoop) -> bool:
    return isinstance(loop, clock.VirtualLoop) and loop.has_handlers()


def condition(obj: JSON, name: str) -> tuple[str, str]:
    """Return a condition's status and reason; both are empty if there is no such condition."""
    for entry in (obj.get("status") or {}).get("conditions", ()):
        if entry["type"] == name:
            return entry["status"], entry.get("reason", "")
    return "", ""
