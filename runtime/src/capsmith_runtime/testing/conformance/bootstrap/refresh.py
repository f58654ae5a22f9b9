"""Bootstrap data with a token that expires: renewed until the machine has joined its cluster."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest

from capsmith_runtime.bootstrap.api import BootstrapConfigReconciler
from capsmith_runtime.bootstrap.controller import BootstrapConfigKind
from capsmith_runtime.kube.client import NamespacedName
from capsmith_runtime.testing.bootstrap.environment import BootstrapEnvironment
from capsmith_runtime.testing.conformance.base import KindCase, scenario
from capsmith_runtime.testing.conformance.bootstrap.base import BootstrapConformance
from capsmith_runtime.testing.provider import ProviderUnderTest


class TimeOfDay:
    """The time of day that ``time.time()`` returns, also to the author's code; a test sets it."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds


class TestBootstrapDataRefresh(BootstrapConformance):
    """Bootstrap data that are renewed; requires a reconciler with the method ``refresh_data``.

    The tests set ``time.time()``, so read the time from there for what expires.
    """

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[KindCase[BootstrapConfigKind]]:
        """Return the cases for the kinds that renew the data of a Machine."""
        return [case for case in super().cases(provider) if _refreshes(case.kind)]

    @pytest.fixture
    def time_of_day(self, monkeypatch: pytest.MonkeyPatch) -> TimeOfDay:
        """Return the time of day, which stands still until a test sets another one."""
        found = TimeOfDay(float(int(time.time())))
        monkeypatch.setattr(time, "time", lambda: found.seconds)
        return found

    @scenario
    async def test_data_are_renewed_until_the_machine_has_a_node(
        self, env: BootstrapEnvironment, time_of_day: TimeOfDay
    ) -> None:
        """A Machine's data are renewed when ``refresh_after`` has passed, again and again.

        Each document has a ``refresh_after``: a server may wait for capacity longer than two tokens
        are valid.  Nothing is written before that time, nor once the Machine has a Node.
        """
        _, key = await env.running_worker()
        env.adopt("Machine", key)
        await env.quiet()
        for _ in range(2):
            await _is_renewed(env, key, time_of_day)

        env.api.change("Machine", key, {"status": {"nodeRef": {"name": "n1"}}})
        time_of_day.seconds = _due(env, key)
        await _changes_nothing(env, key)

    @scenario
    async def test_data_of_a_pool_are_renewed(
        self, env: BootstrapEnvironment, time_of_day: TimeOfDay
    ) -> None:
        """A pool's data are renewed by ``bootstrap_data``, because later machines need them.

        Proves: MP-19.
        """
        cluster = env.add_cluster()
        env.control_plane_is_initialized(cluster)
        key = env.add_pool(cluster)
        await env.has_data(key)
        env.adopt("MachinePool", key)
        await env.quiet()
        for _ in range(2):
            await _is_renewed(env, key, time_of_day)


async def _is_renewed(
    env: BootstrapEnvironment, key: NamespacedName, time_of_day: TimeOfDay
) -> None:
    """Check that the data are renewed in their Secret when they are due, and not earlier."""
    due, before = _due(env, key), env.secret(key)
    time_of_day.seconds = due - 1
    await _changes_nothing(env, key)

    time_of_day.seconds = due
    # A manager finds the time in the Secret, as after a crash.
    await env.restart()
    await env.eventually("the data are renewed", lambda: env.secret(key) != before)
    assert _due(env, key) > due
    secret = env.secret(key)
    assert before is not None
    assert secret is not None
    assert secret["metadata"]["uid"] == before["metadata"]["uid"], "core has copied its name"
    assert env.created(key)


async def _changes_nothing(env: BootstrapEnvironment, key: NamespacedName) -> None:
    await env.quiet()
    before = env.config(key), env.secret(key)
    await env.restart()
    await env.quiet()
    assert (env.config(key), env.secret(key)) == before


def _due(env: BootstrapEnvironment, key: NamespacedName) -> float:
    """Return the time of day at which the data have to be renewed."""
    found = env.refresh_time(key)
    assert found is not None, "the document has no refresh_after"
    return found


def _refreshes(kind: BootstrapConfigKind) -> bool:
    hook = BootstrapConfigReconciler.refresh_data
    return getattr(kind.reconciler, "refresh_data", hook) is not hook
