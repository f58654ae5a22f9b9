"""Which machines bootstrap data are requested for, and what their reconciler is called with."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import NoReturn

import pytest

from capsmith_runtime.bootstrap import BootstrapDocument, TerminalError, Waiting
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.testing.bootstrap.certificates import certificate_of
from capsmith_runtime.testing.bootstrap.environment import BootstrapEnvironment
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.environment import condition
from tests.runtime.bootstrap import scripted_provider
from tests.runtime.bootstrap.scripted_provider import (
    KindleConfigStatus,
    Scope,
    Script,
    ScriptedBootstrap,
)

PROVIDER = scripted_provider.PROVIDER
EXPIRY = "machine.cluster.x-k8s.io/certificates-expiry"


class TestTerminalFailures(ScriptedBootstrap):
    """What core reads about data that can never be generated, in contract v1beta1."""

    @scenario
    async def test_a_machine_shows_the_failure_until_its_data_exist(
        self, env: BootstrapEnvironment, script: Script
    ) -> None:
        """Proves: BC-10."""
        script.result = _raise_terminal_error
        key = env.add_machine(env.add_cluster(), "cp1", control_plane=True)
        await env.eventually("reported", lambda: "failureReason" in _status(env, key))
        status = _status(env, key)
        assert (status["failureReason"], status["failureMessage"]) == ("BadVersion", "no release")
        assert condition(env.config(key), "Ready") == ("False", "BadVersion")

        script.result = lambda config: BootstrapDocument(b"data")
        await env.restart()
        await env.has_data(key)
        await env.eventually("no longer", lambda: "failureReason" not in _status(env, key))

    @scenario
    async def test_a_pool_never_shows_it(self, env: BootstrapEnvironment, script: Script) -> None:
        """Proves: MP-13."""
        script.result = _raise_terminal_error
        cluster = env.add_cluster()
        env.control_plane_is_initialized(cluster)
        key = env.add_pool(cluster, "p1")
        expected = ("False", "BadVersion")
        await env.eventually("reported", lambda: condition(env.config(key), "Ready") == expected)
        assert "failureReason" not in _status(env, key)


def _status(env: BootstrapEnvironment, key: NamespacedName) -> JSON:
    status: JSON = env.config(key).get("status", {})
    return status


def _raise_terminal_error(config: Scope) -> NoReturn:
    raise TerminalError("BadVersion", "no release")


class TestBootstrapScope(ScriptedBootstrap):
    """What the reconciler is called with."""

    @scenario
    async def test_one_machine_initialises_and_the_others_join(
        self, env: BootstrapEnvironment, script: Script
    ) -> None:
        """Proves: BC-12, BC-14."""
        cluster = env.add_cluster()
        await env.has_data(env.add_machine(cluster, "cp1", control_plane=True))
        second = env.add_machine(cluster, "cp2", control_plane=True)
        worker, pool = env.add_machine(cluster, "m1"), env.add_pool(cluster, "p1")
        env.control_plane_is_initialized(cluster)
        for key in (second, worker, pool):
            await env.has_data(key)
        calls = {call.name: call for call in script.calls}
        assert len(script.calls) == len(calls) == 4
        assert [name for name, call in calls.items() if call.is_first_control_plane] == ["cp1"]
        assert {name for name, call in calls.items() if call.is_control_plane} == {"cp1", "cp2"}
        assert {name for name, call in calls.items() if call.node_taints} == {"m1", "p1"}
        assert (calls["m1"].machine_pool, calls["p1"].machine) == (None, None)
        assert {call.version for call in script.calls} == {"v1.34.0"}
        assert all(call.previous is None for call in script.calls)
        assert calls["m1"].cluster.pod_cidrs == ("10.0.0.0/16",)
        assert calls["m1"].spec.verbosity == 1

    @scenario
    async def test_a_cache_that_is_behind_initialises_no_second_cluster(
        self, env: BootstrapEnvironment, script: Script
    ) -> None:
        """Proves: BC-12."""
        cluster = env.add_cluster()

        def initialize(verb: str, kind: str, body: JSON) -> None:
            if (verb, kind) == ("create", "ConfigMap"):
                env.control_plane_is_initialized(cluster)

        env.api.fault = initialize
        key = env.add_machine(cluster, "cp1", control_plane=True)
        await env.has_data(key)
        (call,) = script.calls
        assert not call.is_first_control_plane
        await env.eventually("the lock is gone", lambda: env.lock(cluster) is None)

    @scenario
    async def test_certificates_on_demand(self, env: BootstrapEnvironment, script: Script) -> None:
        async def read_asynchronously(config: Scope) -> BootstrapDocument:
            pair = await config.certificate_async("etcd")
            return BootstrapDocument(f"{pair.certificate}, {pair.private_key}".encode(), "ignition")

        cluster = env.add_cluster()
        env.control_plane_is_initialized(cluster)
        script.result = _read_ca
        first = env.add_machine(cluster, "m1")
        await env.has_data(first)
        assert env.data(first).decode() == certificate_of("ca").certificate

        script.result = read_asynchronously
        second = env.add_machine(cluster, "m2")
        await env.has_data(second)
        pair = certificate_of("etcd")
        assert env.data(second).decode() == f"{pair.certificate}, {pair.private_key}"
        secret = env.secret(second)
        assert secret is not None
        assert secret["data"]["format"] == "aWduaXRpb24="

    @scenario
    async def test_missing_certificates_are_waited_for(
        self, env: BootstrapEnvironment, script: Script
    ) -> None:
        """Proves: BC-12."""
        cluster = env.add_cluster()
        ca = NamespacedName(cluster.namespace, f"{cluster.name}-ca")
        secret = env.api.find("Secret", ca)
        assert secret is not None
        env.api.remove("Secret", ca)
        script.result = _read_ca
        key = env.add_machine(cluster, "cp1", control_plane=True)
        await env.says(key, "WaitingForCertificates")
        env.api.add({**secret, "data": {"tls.key": "eA=="}})
        await env.restart()
        await env.quiet()
        assert condition(env.config(key), "Ready") == ("False", "WaitingForCertificates")

        # A CA whose key is kept outside the cluster is complete.
        env.api.change("Secret", ca, {"data": {"tls.crt": "eA==", "tls.key": None}})
        await env.restart()
        await env.has_data(key)
        assert env.data(key) == b"x"
        assert script.calls[-1].is_first_control_plane, "it has kept its turn"


class TestBootstrapResults(ScriptedBootstrap):
    """What a result, or an exception, becomes in the object."""

    @pytest.mark.parametrize(
        ("result", "reason"),
        [
            (None, "InvalidResult"),
            (b"bytes", "InvalidResult"),
            (OSError("no route"), "InternalError"),
            (Waiting("NoImage", requeue_after=0.05), "NoImage"),
        ],
    )
    @scenario
    async def test_anything_but_a_document_is_reported(
        self, env: BootstrapEnvironment, script: Script, result: object, reason: str
    ) -> None:
        def bootstrap_data(config: Scope) -> object:
            if isinstance(result, Exception):
                raise result
            return result

        script.result = bootstrap_data
        cluster = env.add_cluster()
        env.control_plane_is_initialized(cluster)
        key = env.add_machine(cluster, "m1")
        await env.says(key, reason)
        assert env.secret(key) is None
        await env.eventually("called again", lambda: len(script.calls) > 1)
        script.result = lambda config: BootstrapDocument(b"data")
        await env.has_data(key)
        assert condition(env.config(key), "Ready") == ("True", "Ready")

    @scenario
    async def test_the_expiry_of_certificates_is_stored(
        self, env: BootstrapEnvironment, script: Script
    ) -> None:
        """Proves: BC-16."""
        expiry = datetime(2031, 2, 3, 4, 5, 6, tzinfo=UTC)
        script.result = lambda config: BootstrapDocument(b"data", certificates_expiry=expiry)
        key = env.add_machine(env.add_cluster(), "cp1", control_plane=True)
        await env.has_data(key)
        assert env.config(key)["metadata"]["annotations"][EXPIRY] == "2031-02-03T04:05:06Z"

        # The reconciler is not called again: the Secret stores the expiry.
        await env.stop()
        lost: JSON = {"metadata": {"annotations": None}, "status": None}
        env.api.change(env.kind.resource.kind, key, lost)
        env.start()
        await env.has_data(key)
        assert env.config(key)["metadata"]["annotations"][EXPIRY] == "2031-02-03T04:05:06Z"
        assert len(script.calls) == 1

    @scenario
    async def test_data_without_certificates_have_no_expiry(
        self, env: BootstrapEnvironment, script: Script
    ) -> None:
        """Proves: BC-16."""
        script.result = lambda config: BootstrapDocument(b"data")
        key = env.add_machine(env.add_cluster(), "cp1", control_plane=True)
        await env.has_data(key)
        assert EXPIRY not in env.config(key)["metadata"].get("annotations", {})

    @scenario
    async def test_status_fields_of_the_kind_are_written(
        self, env: BootstrapEnvironment, script: Script
    ) -> None:
        status = KindleConfigStatus(join_method="token")
        script.result = lambda config: BootstrapDocument(b"data", status=status)
        key = env.add_machine(env.add_cluster(), "cp1", control_plane=True)
        await env.has_data(key)
        assert env.config(key)["status"]["joinMethod"] == "token"

    @scenario
    async def test_data_of_a_machine_are_generated_once(
        self, env: BootstrapEnvironment, script: Script
    ) -> None:
        """Proves: MP-19."""
        cluster = env.add_cluster()
        env.control_plane_is_initialized(cluster)
        script.result = lambda config: BootstrapDocument(b"data", refresh_after=1)
        key = env.add_machine(cluster, "m1")
        await env.has_data(key)
        await asyncio.sleep(1.5)
        env.api.change(env.kind.resource.kind, key, {"spec": {"verbosity": 2}})
        env.api.change("Machine", key, {"spec": {"version": "v1.35.0"}})
        await env.quiet()
        assert len(script.calls) == 1


def _read_ca(config: Scope) -> BootstrapDocument:
    return BootstrapDocument(config.certificate("ca").certificate.encode())
