"""Faults of the infrastructure: no server may be leaked, lost or created twice."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

import pytest

from capsmith_runtime.errors import create_api_error
from capsmith_runtime.infrastructure.kinds import InfraClusterKind, InfraMachineKind
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.testing.blocking_calls import find_long_sleeps
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.infrastructure.base import (
    InfrastructureCase,
    InfrastructureConformance,
    check_one_cluster,
    has_cluster_resources,
)
from capsmith_runtime.testing.environment import TestEnvironment, condition
from capsmith_runtime.testing.faults import NONE, Faults
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from capsmith_runtime.testing.provider import ProviderUnderTest, simulate

FAILURES = {"error": Faults(error=1.0), "limit": Faults(limit=1.0), "lost": Faults(lost=1.0)}
HOOK_SECONDS = 0.2
"""Least time limit for a call in seconds of real time, after which a hanging call is ended.

During a call, the test's clock runs in real time.
"""
SLOWEST_CALL = 2
"""Longest that a call may take, as a multiple of what a machine's creation took before."""


class TestInfrastructureCalls(InfrastructureConformance):
    """Calls that fail, hang or take effect late; requires a test double with ``simulate``."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[InfrastructureCase]:
        """Return a case for each pair of kinds and core version, or none without ``simulate``."""
        return super().cases(provider) if simulates_faults(provider) else []

    @pytest.mark.parametrize("failure", FAILURES)
    @scenario
    async def test_a_failing_creation_is_reported_and_repeated(
        self, env: InfrastructureEnvironment, failure: str
    ) -> None:
        """A creation that fails is reported in Ready and retried; nothing is created twice.

        Proves: SM-09.
        """
        simulate(env.infrastructure, FAILURES[failure])
        cluster = env.core.add_cluster()
        # Nothing fails where nothing is created.
        if has_cluster_resources(env.infrastructure):
            await fails(env, lambda: env.core.infra_cluster(cluster))
        simulate(env.infrastructure, NONE)
        await env.cluster_is_provisioned(cluster)
        env.core.infrastructure_is_ready(cluster)
        check_one_cluster(env.infrastructure)

        simulate(env.infrastructure, FAILURES[failure])
        key = env.core.add_machine(cluster)
        await fails(env, lambda: env.core.infra_machine(key))
        # The write of the condition leads to one more call, which would hide a TerminalError.
        await env.quiet()
        assert not env.has_machine(key)
        simulate(env.infrastructure, NONE)
        await works(env, key)

    @pytest.mark.parametrize("failure", FAILURES)
    @scenario
    async def test_a_failure_keeps_what_is_provisioned(
        self, env: InfrastructureEnvironment, failure: str
    ) -> None:
        """A machine stays provisioned and keeps its provider id when a call fails.

        Proves: IM-03.
        """
        cluster = await env.running_cluster()
        key = await env.running_machine(cluster)
        before, provider_id = env.infrastructure.servers(), find_provider_id(env, key)
        await env.kill()
        simulate(env.infrastructure, FAILURES[failure])
        env.start()
        await fails(env, lambda: env.core.infra_machine(key))
        assert env.has_machine(key)
        simulate(env.infrastructure, NONE)
        await works(env, key)
        assert (env.infrastructure.servers(), find_provider_id(env, key)) == (before, provider_id)

    @pytest.mark.parametrize("failure", FAILURES)
    @scenario
    async def test_a_failing_deletion_is_repeated(
        self, env: InfrastructureEnvironment, failure: str
    ) -> None:
        """A deletion that fails keeps the finalizer, is reported in Ready, and is retried.

        Proves: IM-25.
        """
        cluster = await env.running_cluster()
        key = await env.running_machine(cluster)
        simulate(env.infrastructure, FAILURES[failure])
        env.api.remove(env.machine_kind.resource.kind, key)
        await fails(env, lambda: env.core.infra_machine(key))
        assert env.core.infra_machine(key)["metadata"]["finalizers"]
        simulate(env.infrastructure, NONE)
        await removed(env, key)

    @scenario
    async def test_a_deletion_with_refused_credentials_is_repeated(
        self, env: InfrastructureEnvironment
    ) -> None:
        """A server stays known while the credentials are refused: 401 and 403 do not mean 404.

        Proves: IM-25.
        """
        cluster = await env.running_cluster()
        key = await env.running_machine(cluster)
        simulate(env.infrastructure, Faults(refuse=1.0))
        env.api.remove(env.machine_kind.resource.kind, key)
        await expect_failing_deletion(env, env.machine_kind, key, env.infrastructure.servers)
        simulate(env.infrastructure, NONE)
        await removed(env, key)

    @pytest.mark.parametrize("failure", [*FAILURES, "refuse"])
    @scenario
    async def test_a_failing_deletion_of_a_cluster_is_repeated(
        self, env: InfrastructureEnvironment, failure: str
    ) -> None:
        """What machines share is deleted although calls fail at first, and nothing is forgotten.

        Proves: IC-20.
        """
        if not has_cluster_resources(env.infrastructure):
            pytest.skip("nothing is created for a cluster")
        key = await env.running_cluster()
        simulate(env.infrastructure, FAILURES.get(failure, Faults(refuse=1.0)))
        env.api.remove(env.cluster_kind.resource.kind, key)
        await expect_failing_deletion(env, env.cluster_kind, key, env.infrastructure.clusters)
        simulate(env.infrastructure, NONE)
        await env.eventually("it is gone", lambda: env.is_gone(env.cluster_kind, key))
        assert env.infrastructure.clusters() == []

    @scenario
    async def test_a_call_that_hangs_is_reported_and_repeated(
        self, env: InfrastructureEnvironment
    ) -> None:
        """A call that exceeds its timeout is reported in Ready and retried.

        Proves: SM-09.
        """
        cluster = await env.running_cluster()
        seconds = SLOWEST_CALL * await measure_creation(env, cluster)
        await env.stop()
        env.start(hook_timeout=max(HOOK_SECONDS, seconds))
        simulate(env.infrastructure, Faults(hang=1.0))
        key = env.core.add_machine(cluster)
        await fails(env, lambda: env.core.infra_machine(key))
        assert env.infrastructure.servers() == []
        simulate(env.infrastructure, NONE)
        await works(env, key)

    @scenario
    async def test_a_refused_request_is_not_repeated_within_the_call(
        self, env: InfrastructureEnvironment
    ) -> None:
        """A method that is refused with 429 raises its error at once.

        An SDK that sleeps and repeats the request by itself holds the thread meanwhile, and the
        identity is paused too late: turn that off, and raise ``RateLimitedError``.
        """
        cluster = await env.running_cluster()
        find_long_sleeps()
        simulate(env.infrastructure, Faults(limit=1.0))
        key = env.core.add_machine(cluster)

        def is_reported() -> bool:
            sleeps = ", ".join(find_long_sleeps())
            assert not sleeps, f"after a refused request, the method sleeps: {sleeps}"
            return _reports_failure(env, env.core.infra_machine(key))

        await env.eventually("Ready is False or Unknown", is_reported)
        simulate(env.infrastructure, NONE)
        await works(env, key)

    @scenario
    async def test_a_machine_waits_while_nothing_can_be_created(
        self, env: InfrastructureEnvironment
    ) -> None:
        """A machine is reported while a quota is exhausted, and created once there is room again.

        Raise ``ReconcileError`` with ``retry_after``: after a TerminalError or a Terminated the
        machine is not tried again soon enough, or never.

        Proves: IM-03, IM-10.
        """
        cluster = await env.running_cluster()
        simulate(env.infrastructure, Faults(full=1.0))
        key = env.core.add_machine(cluster)
        await env.eventually(
            "it is provisioned, or Ready is False",
            lambda: env.has_machine(key) or _reports_failure(env, env.core.infra_machine(key)),
        )
        if env.has_machine(key):
            pytest.skip("not simulated: the test double creates a server although full=1")
        await env.quiet()
        assert env.infrastructure.servers() == []
        assert "failureReason" not in (env.core.infra_machine(key).get("status") or {})
        simulate(env.infrastructure, NONE)
        await works(env, key)

    @scenario
    async def test_a_cluster_waits_while_nothing_can_be_created(
        self, env: InfrastructureEnvironment
    ) -> None:
        """A cluster is reported while a quota is exhausted, and created once there is room again.

        Proves: SM-09.
        """
        if not has_cluster_resources(env.infrastructure):
            pytest.skip("nothing is created for a cluster")
        simulate(env.infrastructure, Faults(full=1.0))
        cluster = env.core.add_cluster()
        await env.eventually(
            "it is provisioned, or Ready is False",
            lambda: (
                env.has_cluster(cluster) or _reports_failure(env, env.core.infra_cluster(cluster))
            ),
        )
        if env.infrastructure.clusters():
            pytest.skip("not simulated: the test double creates a cluster although full=1")
        await env.quiet()
        assert not env.has_cluster(cluster), "it is provisioned although nothing was created"
        assert "failureReason" not in (env.core.infra_cluster(cluster).get("status") or {})
        simulate(env.infrastructure, NONE)
        await env.cluster_is_provisioned(cluster)
        check_one_cluster(env.infrastructure)

    @scenario
    async def test_a_killed_manager_leaves_a_call_running(
        self, env: InfrastructureEnvironment
    ) -> None:
        """A killed manager's last call may take effect only after the next manager has started.

        Proves: SM-09.
        """
        cluster = await env.running_cluster()
        simulate(env.infrastructure, Faults(slow=0.2))
        keys = [env.core.add_machine(cluster, f"m{number}") for number in range(1, 5)]
        await env.eventually("the first calls run", lambda: env.infrastructure.servers())
        await env.restart()
        await env.eventually("all are provisioned", lambda: all(map(env.has_machine, keys)))
        await env.quiet()
        assert len(env.infrastructure.servers()) == len(keys)
        assert len({find_provider_id(env, key) for key in keys}) == len(keys)

    @scenario
    async def test_lost_replies_duplicate_nothing(self, env: InfrastructureEnvironment) -> None:
        """Servers whose creation succeeded without a reply are not created a second time.

        Proves: SM-09.
        """
        cluster = await env.running_cluster()
        simulate(env.infrastructure, Faults(lost=0.2))
        keys = [env.core.add_machine(cluster, f"m{number}") for number in range(1, 9)]
        await env.eventually("all are provisioned", lambda: all(map(env.has_machine, keys)))
        simulate(env.infrastructure, NONE)
        await env.quiet()
        assert len(env.infrastructure.servers()) == len(keys)

    @pytest.mark.parametrize("killed", [False, True])
    @scenario
    async def test_a_server_is_listed_late(
        self, env: InfrastructureEnvironment, killed: bool
    ) -> None:
        """A server that the infrastructure lists late is neither duplicated nor considered lost.

        Proves: SM-09, IM-11.
        """
        cluster = await env.running_cluster()
        simulate(env.infrastructure, Faults(late=4))
        key = env.core.add_machine(cluster)
        await env.eventually("the server exists", lambda: env.infrastructure.servers())
        servers = env.infrastructure.servers()
        if killed:
            await env.restart()

        def is_provisioned() -> bool:
            status = env.core.infra_machine(key).get("status") or {}
            assert "failureReason" not in status, "a machine that is listed late is not lost"
            assert "Terminated" not in str(status)
            return env.has_machine(key)

        await env.eventually("it is provisioned", is_provisioned)
        await works(env, key)
        assert env.infrastructure.servers() == servers

    @scenario
    async def test_a_server_that_is_not_listed_yet_is_deleted(
        self, env: InfrastructureEnvironment
    ) -> None:
        """A machine whose server is not listed yet can be deleted, together with its server.

        Proves: IM-25.
        """
        cluster = await env.running_cluster()
        simulate(env.infrastructure, Faults(late=1000))
        key = env.core.add_machine(cluster)
        await env.eventually("the server exists", lambda: env.infrastructure.servers())
        await env.restart()
        env.api.remove(env.machine_kind.resource.kind, key)
        await removed(env, key)

    @scenario
    async def test_an_unrecorded_server_that_is_listed_late_is_deleted(
        self, env: InfrastructureEnvironment
    ) -> None:
        """A server without a recorded provider id is deleted, even if it is listed late.

        Only a search can find the server, and the first searches do not.

        Proves: IM-25.
        """
        cluster = await env.running_cluster()
        simulate(env.infrastructure, Faults(late=5))
        reached = asyncio.Event()

        def crash(verb: str, kind: str, body: JSON) -> None:
            if kind == env.machine_kind.resource.kind and env.infrastructure.servers():
                reached.set()
                raise create_api_error(500, "InternalError", "the request never arrived")

        env.api.fault = crash
        key = env.core.add_machine(cluster)
        await env.eventually("its provider id is written", reached.is_set)
        await env.kill()
        assert len(env.infrastructure.servers()) == 1
        assert "providerID" not in env.core.infra_machine(key)["spec"]
        env.api.fault = None
        simulate(env.infrastructure, Faults(late=5))
        env.api.remove(env.machine_kind.resource.kind, key)
        env.start()
        await removed(env, key)


async def fails(env: TestEnvironment, find: Callable[[], JSON]) -> None:
    """Wait until the Ready condition reports the error that a call raised."""

    what = "Ready is False or Unknown (a share of 1 makes all calls fail, searches too)"
    await env.eventually(what, lambda: _reports_failure(env, find()))


def _reports_failure(env: TestEnvironment, obj: JSON) -> bool:
    status, reason = condition(obj, "Ready")
    assert reason != "InvalidResult"
    is_failure = status in ("False", "Unknown") and not reason.startswith("WaitingFor")
    return is_failure or not env.has_conditions(obj)


async def expect_failing_deletion(
    env: InfrastructureEnvironment,
    kind: InfraClusterKind | InfraMachineKind,
    key: NamespacedName,
    remaining: Callable[[], list[str]],
) -> None:
    """Wait until a deletion reports that calls fail, and check that its object is kept.

    Skip the test if all is deleted, because the test double lets the calls succeed.
    """

    def is_decided() -> bool:
        obj = env.api.find(kind.resource.kind, key)
        return obj is None or _reports_failure(env, obj)

    await env.eventually("Ready is False or Unknown", is_decided)
    if env.is_gone(kind, key):
        assert not remaining(), f"{key} is gone, and leaves {remaining()} behind"
        pytest.skip("not simulated: the calls of the test double succeed")


async def measure_creation(env: InfrastructureEnvironment, cluster: NamespacedName) -> float:
    """Create and delete a machine, and return the seconds of real time that its creation took.

    The calls of a test double that is an HTTP server take longer than those of one in memory.
    """
    start = time.monotonic()
    key = await env.running_machine(cluster, "measured")
    seconds = time.monotonic() - start
    env.api.remove(env.machine_kind.resource.kind, key)
    await removed(env, key)
    return seconds


async def works(env: InfrastructureEnvironment, key: NamespacedName) -> None:
    """Wait until a machine is ready again, and check that exactly one server exists."""
    await env.eventually(
        "Ready is True",
        lambda: env.has_machine(key) and env.shows(env.core.infra_machine(key), "Ready", "True"),
    )
    await env.quiet()
    assert len(env.infrastructure.servers()) == 1


async def removed(env: InfrastructureEnvironment, key: NamespacedName) -> None:
    """Wait until a machine is gone, and check that its server is gone as well."""
    await env.eventually("it is gone", lambda: env.is_gone(env.machine_kind, key))
    assert env.infrastructure.servers() == []


def find_provider_id(env: InfrastructureEnvironment, key: NamespacedName) -> str:
    """Return the provider id in an infrastructure machine's spec."""
    return str(env.core.infra_machine(key)["spec"]["providerID"])


def simulates_faults(provider: ProviderUnderTest) -> bool:
    """Return whether the test double can simulate failing calls."""
    return hasattr(provider.infrastructure, "simulate")
