"""Calls of the service that fail; no control plane may be leaked, lost or created twice."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from capsmith_runtime.controlplane.managed.controller import ManagedControlPlaneKind
from capsmith_runtime.errors import create_api_error
from capsmith_runtime.kube.client import JSON
from capsmith_runtime.testing.conformance.base import KindCase, scenario
from capsmith_runtime.testing.conformance.controlplane.base import ManagedControlPlaneConformance
from capsmith_runtime.testing.controlplane.managed_environment import (
    CONTROL_PLANE,
    ManagedControlPlaneEnvironment,
)
from capsmith_runtime.testing.faults import FAILURES, FAULTY_SECONDS, NONE, Faults
from capsmith_runtime.testing.provider import ProviderUnderTest, simulate


class TestManagedControlPlaneCalls(ManagedControlPlaneConformance):
    """Calls of the service that fail; requires a test double with ``simulate``."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[KindCase[ManagedControlPlaneKind]]:
        """Return the cases of a provider, or none if the double cannot fail."""
        return super().cases(provider) if hasattr(provider.hosting, "simulate") else []

    @pytest.mark.parametrize("failure", FAILURES)
    @scenario
    async def test_a_failing_creation_is_reported_and_repeated(
        self, env: ManagedControlPlaneEnvironment, failure: str
    ) -> None:
        """A creation that fails is reported in Available and repeated; nothing is created twice.

        Proves: CP-25, SM-09.
        """
        simulate(env.hosting, FAILURES[failure])
        env.add_cluster()
        env.add_control_plane()
        await _fails(env)
        assert not env.initialized()
        simulate(env.hosting, NONE)
        await env.eventually("it is initialised", env.initialized)
        await env.quiet()
        assert len(env.hosting.control_planes()) == 1

    @pytest.mark.parametrize("failure", FAILURES)
    @scenario
    async def test_a_failure_keeps_what_runs(
        self, env: ManagedControlPlaneEnvironment, failure: str
    ) -> None:
        """A control plane that runs stays initialized when a call fails, and keeps its kubeconfig.

        Proves: CP-02, SM-09.
        """
        await env.running()
        before, kubeconfig = env.hosting.control_planes(), env.kubeconfig()
        await env.kill()
        simulate(env.hosting, FAILURES[failure])
        env.start()
        await _fails(env)
        assert env.initialized()
        assert env.kubeconfig() == kubeconfig
        simulate(env.hosting, NONE)
        await env.eventually("it is available", lambda: env.says("Available", "True"))
        assert env.hosting.control_planes() == before

    @pytest.mark.parametrize("failure", FAILURES)
    @scenario
    async def test_a_failing_deletion_is_repeated(
        self, env: ManagedControlPlaneEnvironment, failure: str
    ) -> None:
        """A deletion that fails keeps the object, is reported in Available, and is repeated.

        Let the errors of the service pass: only ``Deleted`` lets the object go.

        Proves: CP-34, SM-08, SM-09.
        """
        await env.running()
        kind = env.kind.resource.kind
        simulate(env.hosting, FAILURES[failure])
        env.api.remove(kind, CONTROL_PLANE)
        await _fails(env)
        simulate(env.hosting, NONE)
        await env.eventually("it is gone", lambda: env.api.find(kind, CONTROL_PLANE) is None)
        assert not env.hosting.control_planes()

    @scenario
    async def test_a_failing_search_is_not_an_empty_one(
        self, env: ManagedControlPlaneEnvironment
    ) -> None:
        """While the search for a control plane that is not recorded fails, none is created.

        Let the error of a search pass: it has not found that there is no control plane.

        Proves: SM-09.
        """
        has_begun = env.hosting.control_planes

        def refuse(verb: str, kind: str, body: JSON) -> None:
            if has_begun():
                raise create_api_error(503, "ServiceUnavailable", "not now")

        env.api.fault = refuse
        env.add_cluster()
        env.add_control_plane()
        await env.eventually("its creation has begun", has_begun)
        await env.kill()
        env.api.fault = None
        simulate(env.hosting, FAILURES["lost"])
        env.start()
        await _fails(env)
        await env.quiet()
        simulate(env.hosting, NONE)
        await env.eventually("it is initialised", env.initialized)
        assert len(env.hosting.control_planes()) == 1

    @scenario
    async def test_lost_replies_create_nothing_twice(
        self, env: ManagedControlPlaneEnvironment
    ) -> None:
        """A control plane whose creation succeeded without a reply is not created a second time.

        Proves: SM-09.
        """
        simulate(env.hosting, Faults(lost=0.4, seed=1))
        namespaces = [f"lost-{number}" for number in range(4)]
        for namespace in namespaces:
            env.add_namespace(namespace)
            env.add_cluster(namespace=namespace)
            env.add_control_plane(namespace=namespace)
        await asyncio.sleep(FAULTY_SECONDS)
        simulate(env.hosting, NONE)
        await env.eventually("all are initialised", lambda: all(map(env.initialized, namespaces)))
        await env.quiet()
        assert len(env.hosting.control_planes()) == len(namespaces)


async def _fails(env: ManagedControlPlaneEnvironment) -> None:
    """Wait until the control plane reports the error that a call raised."""
    if not env.has_conditions(env.obj()):
        await env.quiet()
        return

    def is_reported() -> bool:
        return env.condition("Available").get("status") in ("False", "Unknown")

    await env.eventually(
        "Available is False or Unknown (a share of 1 makes all calls fail)", is_reported
    )
