"""Managed control planes when something is missing, fails, or belongs to another owner."""

from __future__ import annotations

import asyncio
import base64
import uuid
from typing import Any

import pytest

from capsmith_runtime.contract.model import Endpoint
from capsmith_runtime.controlplane.managed.api import (
    ClusterCredentials,
    ManagedControlPlaneDeleteScope,
    ManagedControlPlaneReconciler,
    ManagedControlPlaneScope,
    ManagedControlPlaneState,
)
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.reconcile.results import Deleted, Waiting
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.controlplane.base import ManagedControlPlaneConformance
from capsmith_runtime.testing.controlplane.managed_environment import (
    CLUSTER,
    CLUSTER_NAME,
    CONTROL_PLANE,
    KUBECONFIG,
    LATER,
    NAMESPACE,
    PAUSED,
    VERSION,
    ManagedControlPlaneEnvironment,
)
from capsmith_runtime.testing.environment import condition
from capsmith_runtime.testing.limits import limits
from tests.runtime.scenarios.providers import provider, run_with

PROVIDER = provider("managed")
Answer = ManagedControlPlaneState | Waiting
ELSEWHERE = "elsewhere"
TAKEN = ("False", "ExternalIDTaken")
EXEC = """
clusters: [{name: c, cluster: {server: "https://another.test:6443"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: sh}}}]
current-context: c
"""


class Scripted(ManagedControlPlaneReconciler[Any]):
    """Give the answer that a scenario has set."""

    answer: Answer | Exception
    calls: list[tuple[str, str]]
    """Method and namespace of each call."""

    def reconcile_normal(self, control_plane: ManagedControlPlaneScope[Any]) -> Answer:
        """Return or raise the answer."""
        self.calls.append(("normal", control_plane.namespace))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def reconcile_delete(self, control_plane: ManagedControlPlaneDeleteScope[Any]) -> Deleted:
        """Report that nothing exists."""
        self.calls.append(("delete", control_plane.namespace))
        return Deleted()


class Changing(Scripted):
    """Give other credentials at each call."""

    def reconcile_normal(self, control_plane: ManagedControlPlaneScope[Any]) -> Answer:
        """Return a token that no earlier call has returned."""
        return answer(kubeconfig=ClusterCredentials(token=str(uuid.uuid4())))


@run_with("managed")
class TestManagedControlPlaneFaults(ManagedControlPlaneConformance):
    """Managed control planes when something is missing, fails, or belongs to another owner."""

    @scenario
    async def test_a_kubeconfig_that_always_differs_is_found_soon(
        self, env: ManagedControlPlaneEnvironment
    ) -> None:
        """Each write of the Secret leads to the next one: the test says so, and does not wait."""
        await env.kill()
        env.use(Changing)
        env.start()
        began = asyncio.get_running_loop().time()
        with pytest.raises(AssertionError, match="Secret c1-kubeconfig is written again and again"):
            await env.running()
        assert asyncio.get_running_loop().time() - began < limits().wait_seconds / 2

    @scenario
    async def test_a_lost_owner_of_the_kubeconfig_comes_back(
        self, env: ManagedControlPlaneEnvironment
    ) -> None:
        """Proves: SM-11, SEC-01."""
        await env.running()
        secret = env.api.find("Secret", KUBECONFIG)
        assert secret is not None
        before = secret["metadata"]["ownerReferences"]
        env.api.change("Secret", KUBECONFIG, {"metadata": {"ownerReferences": None}})
        await env.eventually("it is owned", lambda: _owners(env) == before)

    @scenario
    async def test_the_external_id_of_another_control_plane(
        self, env: ManagedControlPlaneEnvironment
    ) -> None:
        """A user who has copied the id gets no access to the other's service, nor deletes it.

        Proves: SM-09.
        """
        script = await scripted(env, answer())
        await env.eventually("it is initialised", env.initialized)
        kind, copy = env.kind.resource.kind, NamespacedName(ELSEWHERE, CONTROL_PLANE.name)
        _add_copy(env)
        await env.eventually("it is reported", lambda: _available(env, copy) == TAKEN)
        await env.restart()
        await env.quiet()
        env.api.remove(kind, copy)
        await env.quiet()
        assert {namespace for _, namespace in script.calls} == {NAMESPACE}
        assert env.api.find("Secret", NamespacedName(ELSEWHERE, KUBECONFIG.name)) is None
        assert env.initialized()

        env.api.remove(kind, CONTROL_PLANE)
        await env.eventually("the other is gone", lambda: env.api.find(kind, CONTROL_PLANE) is None)
        await env.eventually("the copy is gone", lambda: env.api.find(kind, copy) is None)

    @scenario
    async def test_credentials_become_a_kubeconfig(
        self, env: ManagedControlPlaneEnvironment
    ) -> None:
        """Proves: SEC-01."""
        await scripted(env, answer())
        await env.eventually("it is initialised", env.initialized)
        assert env.kubeconfig().server == "https://api.test:443"
        assert env.kubeconfig().token == "t"

    @scenario
    async def test_a_kubeconfig_that_core_could_not_use_is_refused(
        self, env: ManagedControlPlaneEnvironment
    ) -> None:
        """Proves: CP-22."""
        await scripted(env, answer(kubeconfig=EXEC))
        await env.eventually(
            "it says so", lambda: env.says("Available", "Unknown", "InvalidResult")
        )
        assert not env.initialized()
        assert env.api.find("Secret", KUBECONFIG) is None

    @scenario
    async def test_a_state_without_a_version_is_refused(
        self, env: ManagedControlPlaneEnvironment
    ) -> None:
        """The kind has a version, so that users must see which one runs.

        Proves: CP-09, CP-10.
        """
        await scripted(env, answer(version=""))
        await env.eventually(
            "it says so", lambda: env.says("Available", "Unknown", "InvalidResult")
        )
        assert "no version" in env.condition("Available")["message"]
        assert not env.initialized()

    @scenario
    async def test_an_upgrade_takes_its_time(self, env: ManagedControlPlaneEnvironment) -> None:
        """Proves: CP-10, CP-26."""
        script = await scripted(env, answer())
        await env.eventually("it is initialised", env.initialized)
        env.api.change(env.kind.resource.kind, CONTROL_PLANE, {"spec": {"version": LATER}})
        await env.eventually("it says so", lambda: env.says("RollingOut", "True"))
        assert env.condition("RollingOut")["message"] == f"Upgrading from {VERSION} to {LATER}"
        assert env.status()["version"] == VERSION
        assert env.says("Available", "True")

        script.answer = answer(version=LATER)
        await env.look_again()
        assert env.status()["version"] == LATER
        assert not env.says("RollingOut", "True")

    @scenario
    async def test_an_initialised_control_plane_stays_initialised(
        self, env: ManagedControlPlaneEnvironment
    ) -> None:
        """Proves: CP-02, CP-03, ST-06."""
        script = await scripted(env, answer())
        await env.eventually("it is initialised", env.initialized)
        script.answer = answer(ready=False, reason="Unreachable", message="no answer")
        await env.look_again()
        assert env.says("Available", "False", "Unreachable")
        assert env.initialized()

        script.answer = RuntimeError("the service is down")
        await env.look_again()
        assert env.says("Available", "Unknown", "InternalError")
        assert env.initialized()
        assert env.status()["version"] == VERSION

        script.answer = answer()
        await env.look_again()
        assert env.says("Available", "True")

    @scenario
    async def test_a_wait_of_an_initialised_control_plane_says_nothing_about_it(
        self, env: ManagedControlPlaneEnvironment
    ) -> None:
        """Available is Unknown during a wait, unless the control plane was known not to work.

        Proves: ST-06.
        """
        script = await scripted(env, answer())
        await env.eventually("it is initialised", env.initialized)
        script.answer = Waiting("Busy", "the service has no answer")
        await env.look_again()
        await env.eventually("it is unknown", lambda: env.says("Available", "Unknown", "Busy"))

        script.answer = answer(ready=False, reason="Unreachable", message="no answer")
        await env.look_again()
        assert env.says("Available", "False", "Unreachable")
        script.answer = Waiting("Busy", "the service has no answer")
        await env.look_again()
        await env.eventually("it waits", lambda: env.says("Available", "False", "Busy"))

        script.answer = answer()
        await env.look_again()
        await env.eventually("it is available", lambda: env.says("Available", "True"))
        assert env.initialized()

    @scenario
    async def test_a_kubeconfig_of_users_is_kept(self, env: ManagedControlPlaneEnvironment) -> None:
        """Proves: SEC-01."""
        mine = base64.b64encode(EXEC.replace("exec:", "other:").encode()).decode()
        env.api.add(_secret({"value": mine}))
        before = env.api.find("Secret", KUBECONFIG)
        await scripted(env, answer())
        await env.eventually("it is initialised", env.initialized)
        await env.quiet()
        assert env.api.find("Secret", KUBECONFIG) == before
        assert env.says("Available", "True")

    @scenario
    async def test_a_broken_kubeconfig_of_users_is_reported(
        self, env: ManagedControlPlaneEnvironment
    ) -> None:
        """Proves: SEC-01."""
        env.api.add(_secret({"other": ""}))
        await scripted(env, answer())
        await env.eventually("it says so", lambda: env.says("Available", "False"))
        assert env.condition("Available")["message"] == (
            'Secret c1-kubeconfig cannot be used: it has no key "value"'
        )
        secret = env.api.find("Secret", KUBECONFIG)
        assert secret is not None
        assert secret["data"] == {"other": ""}

    @scenario
    async def test_a_wait_is_told_and_ends(self, env: ManagedControlPlaneEnvironment) -> None:
        script = await scripted(env, Waiting("StillMaking", "half of it is there"))
        await env.eventually("it says so", lambda: env.says("Available", "False", "StillMaking"))
        assert env.condition("Available")["message"] == "half of it is there"
        if env.contract == "v1beta1":
            assert env.says("Ready", "False", "StillMaking")
        assert "version" not in env.status()
        script.answer = answer()
        await env.look_again()
        assert env.initialized()


def answer(**changes: Any) -> ManagedControlPlaneState:
    """Return the state of a control plane that exists."""
    known: dict[str, Any] = {
        "endpoint": Endpoint("api.test", 443),
        "version": VERSION,
        "kubeconfig": ClusterCredentials(token="t"),
    }
    return ManagedControlPlaneState(**{**known, **changes})


async def scripted(
    env: ManagedControlPlaneEnvironment, first: Answer | Exception
) -> type[Scripted]:
    """Add a control plane whose reconciler gives that answer; it can be changed later."""
    script = type("Script", (Scripted,), {"answer": first, "calls": []})
    env.use(script)
    await env.restart()
    env.add_cluster()
    env.add_control_plane()
    return script


def _secret(data: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": {
            "namespace": KUBECONFIG.namespace,
            "name": KUBECONFIG.name,
            "labels": {CLUSTER_NAME: "c1"},
        },
        "data": data,
    }


@run_with("managed")
class TestManagedControlPlane(ManagedControlPlaneConformance):
    """A managed control plane that is paused itself."""

    @scenario
    async def test_a_paused_control_plane_of_its_own(
        self, env: ManagedControlPlaneEnvironment
    ) -> None:
        """A control plane with the paused annotation is not created, and reports the pause.

        Proves: SM-01.
        """
        env.add_cluster()
        env.add_control_plane()
        env.api.change(
            env.kind.resource.kind, CONTROL_PLANE, {"metadata": {"annotations": {PAUSED: ""}}}
        )
        await env.eventually("it says so", lambda: env.says("Paused", "True"))
        assert not env.hosting.control_planes()


def _add_copy(env: ManagedControlPlaneEnvironment) -> None:
    """Add a Cluster and its control plane with the same names and ids in another namespace."""
    cluster, control_plane = env.api.find("Cluster", CLUSTER), env.obj()
    assert cluster is not None
    head = {name: cluster[name] for name in ("apiVersion", "kind", "spec", "status")}
    made = env.api.add({**head, "metadata": {"namespace": ELSEWHERE, "name": CLUSTER.name}})
    (owner,) = control_plane["metadata"]["ownerReferences"]
    metadata = {
        **{name: control_plane["metadata"][name] for name in ("name", "labels", "annotations")},
        "namespace": ELSEWHERE,
        "ownerReferences": [{**owner, "uid": made["metadata"]["uid"]}],
    }
    head = {name: control_plane[name] for name in ("apiVersion", "kind", "spec")}
    env.api.add({**head, "metadata": metadata})


def _available(env: ManagedControlPlaneEnvironment, key: NamespacedName) -> tuple[str, str]:
    obj = env.api.find(env.kind.resource.kind, key) or {}
    return condition(obj, "Available")


def _owners(env: ManagedControlPlaneEnvironment) -> list[JSON]:
    secret = env.api.find("Secret", KUBECONFIG) or {"metadata": {}}
    owners: list[JSON] = secret["metadata"].get("ownerReferences") or []
    return owners
