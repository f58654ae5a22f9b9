"""Put into a generated repository: authors of bootstrap data that answer by a script."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from cluster_api_bootstrap_provider_kindle import (
    BootstrapConfig,
    BootstrapDocument,
    Waiting,
)
from cluster_api_bootstrap_provider_kindle._generated.api.kindle_config import KindleConfigStatus
from cluster_api_bootstrap_provider_kindle.controllers.kindle_config import KindleConfigReconciler

from .bootstrap_stage import BootstrapStage, Cast, condition, play, staged
from .provider import JSON, Key

Config = BootstrapConfig[Any]
EXPIRY = "machine.cluster.x-k8s.io/certificates-expiry"


class Script:
    """Answers and remembers what it was asked; an exception is raised."""

    def __init__(self) -> None:
        self.calls: list[Config] = []
        self.answer: Callable[[Config], object] = lambda config: BootstrapDocument(b"data")

    def of(self, name: str) -> list[Config]:
        return [call for call in self.calls if call.name == name]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Script:
    made = Script()

    def bootstrap_data(self: object, config: Config) -> object:
        made.calls.append(config)
        return made.answer(config)

    monkeypatch.setattr(KindleConfigReconciler, "bootstrap_data", bootstrap_data)
    return made


@staged
def test_who_initialises_and_who_joins(cast: Cast, script: Script) -> None:
    async def story(stage: BootstrapStage) -> None:
        cluster = stage.add_cluster()
        await stage.has_data(stage.add_machine(cluster, "cp1", control_plane=True))
        second = stage.add_machine(cluster, "cp2", control_plane=True)
        worker, pool = stage.add_machine(cluster, "m1"), stage.add_pool(cluster, "p1")
        stage.control_plane_is_initialized(cluster)
        for key in (second, worker, pool):
            await stage.has_data(key)
        asked = {call.name: call for call in script.calls}
        assert len(script.calls) == len(asked) == 4
        assert [name for name, call in asked.items() if call.is_first_control_plane] == ["cp1"]
        assert {name for name, call in asked.items() if call.is_control_plane} == {"cp1", "cp2"}
        assert {name for name, call in asked.items() if call.node_taints} == {"m1", "p1"}
        assert (asked["m1"].machine_pool, asked["p1"].machine) == (None, None)
        assert {call.version for call in script.calls} == {"v1.34.0"}
        assert all(call.previous is None for call in script.calls)
        assert asked["m1"].cluster.pod_cidrs == ("10.0.0.0/16",)
        assert asked["m1"].spec.verbosity == 1

    play(cast, story)


@staged
def test_a_cache_that_is_behind_makes_no_second_cluster(cast: Cast, script: Script) -> None:
    async def story(stage: BootstrapStage) -> None:
        cluster = stage.add_cluster()

        def initialised_meanwhile(verb: str, kind: str, body: JSON) -> None:
            if (verb, kind) == ("create", "ConfigMap"):
                stage.control_plane_is_initialized(cluster)

        stage.api.fault = initialised_meanwhile
        key = stage.add_machine(cluster, "cp1", control_plane=True)
        await stage.has_data(key)
        (call,) = script.calls
        assert not call.is_first_control_plane
        await stage.eventually("the lock is gone", lambda: stage.lock(cluster) is None)

    play(cast, story)


@staged
def test_certificates_on_demand(cast: Cast, script: Script) -> None:
    async def asynchronous(config: Config) -> BootstrapDocument:
        pair = await config.certificate_async("etcd")
        return BootstrapDocument(f"{pair.certificate}, {pair.private_key}".encode(), "ignition")

    async def story(stage: BootstrapStage) -> None:
        cluster = stage.add_cluster()
        stage.control_plane_is_initialized(cluster)
        script.answer = lambda config: BootstrapDocument(
            config.certificate("ca").certificate.encode()
        )
        first = stage.add_machine(cluster, "m1")
        await stage.has_data(first)
        assert stage.data(first) == b"certificate of ca"

        script.answer = asynchronous
        second = stage.add_machine(cluster, "m2")
        await stage.has_data(second)
        assert stage.data(second) == b"certificate of etcd, private key of etcd"
        secret = stage.secret(second)
        assert secret is not None
        assert secret["data"]["format"] == "aWduaXRpb24="

    play(cast, story)


@staged
def test_certificates_that_are_not_there_are_waited_for(cast: Cast, script: Script) -> None:
    async def story(stage: BootstrapStage) -> None:
        cluster = stage.add_cluster()
        ca = Key(cluster.namespace, f"{cluster.name}-ca")
        secret = stage.api.find("Secret", ca)
        assert secret is not None
        stage.api.remove("Secret", ca)
        script.answer = lambda config: BootstrapDocument(
            config.certificate("ca").certificate.encode()
        )
        key = stage.add_machine(cluster, "cp1", control_plane=True)
        await stage.says(key, "WaitingForCertificates")
        stage.api.add({**secret, "data": {"tls.key": "eA=="}})
        await stage.restart()
        await stage.quiet()
        assert condition(stage.config(key), "Ready") == ("False", "WaitingForCertificates")

        # A CA whose key is kept outside is one all the same.
        stage.api.change("Secret", ca, {"data": {"tls.crt": "eA==", "tls.key": None}})
        await stage.restart()
        await stage.has_data(key)
        assert stage.data(key) == b"x"
        assert script.calls[-1].is_first_control_plane, "it has kept its turn"

    play(cast, story)


@staged
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (None, "InvalidResult"),
        (b"bytes", "InvalidResult"),
        (OSError("no route"), "InternalError"),
        (Waiting("NoImage", requeue_after=0.05), "NoImage"),
    ],
)
def test_what_is_no_document_is_told(
    cast: Cast, script: Script, answer: object, reason: str
) -> None:
    def say(config: Config) -> object:
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def story(stage: BootstrapStage) -> None:
        script.answer = say
        cluster = stage.add_cluster()
        stage.control_plane_is_initialized(cluster)
        key = stage.add_machine(cluster, "m1")
        await stage.says(key, reason)
        assert stage.secret(key) is None
        await stage.eventually("asked again", lambda: len(script.calls) > 1)
        script.answer = lambda config: BootstrapDocument(b"data")
        await stage.has_data(key)
        assert condition(stage.config(key), "Ready") == ("True", "Ready")

    play(cast, story)


@staged
def test_when_certificates_expire(cast: Cast, script: Script) -> None:
    async def story(stage: BootstrapStage) -> None:
        expiry = datetime(2031, 2, 3, 4, 5, 6, tzinfo=UTC)
        script.answer = lambda config: BootstrapDocument(b"data", certificates_expiry=expiry)
        key = stage.add_machine(stage.add_cluster(), "cp1", control_plane=True)
        await stage.has_data(key)
        assert stage.config(key)["metadata"]["annotations"] == {EXPIRY: "2031-02-03T04:05:06Z"}

        # The author is not asked again: the Secret remembers.
        await stage.stop()
        lost: JSON = {"metadata": {"annotations": None}, "status": None}
        stage.api.change(stage.kind.resource.kind, key, lost)
        stage.start()
        await stage.has_data(key)
        assert stage.config(key)["metadata"]["annotations"] == {EXPIRY: "2031-02-03T04:05:06Z"}
        assert len(script.calls) == 1

    play(cast, story)


@staged
def test_status_fields_of_the_kind(cast: Cast, script: Script) -> None:
    async def story(stage: BootstrapStage) -> None:
        status = KindleConfigStatus(join_method="token")
        script.answer = lambda config: BootstrapDocument(b"data", status=status)
        key = stage.add_machine(stage.add_cluster(), "cp1", control_plane=True)
        await stage.has_data(key)
        assert stage.config(key)["status"]["joinMethod"] == "token"

    play(cast, story)


@staged
def test_data_of_a_pool_are_refreshed_in_place(cast: Cast, script: Script) -> None:
    async def story(stage: BootstrapStage) -> None:
        began = time.monotonic()
        key = await _refreshed_pool(stage, script, 1)
        first = stage.secret(key)
        await stage.eventually("made anew", lambda: stage.data(key) != b"data 0")
        assert time.monotonic() - began > 0.5, "no sooner than the author said"
        secret = stage.secret(key)
        assert first is not None
        assert secret is not None
        assert secret["metadata"]["uid"] == first["metadata"]["uid"]
        previous = script.calls[1].previous
        assert previous is not None
        assert (previous.value, previous.format) == (b"data 0", "cloud-config")
        await stage.eventually("and again", lambda: stage.data(key) not in (b"data 0", b"data 1"))

    play(cast, story)


@staged
def test_the_time_to_refresh_outlives_a_restart(cast: Cast, script: Script) -> None:
    async def story(stage: BootstrapStage) -> None:
        key = await _refreshed_pool(stage, script, 3600)
        stage.adopt("MachinePool", key)
        await stage.restart()
        await stage.quiet()
        assert len(script.calls) == 1

        stage.api.change("Secret", key, _due("2020-01-01T00:00:00Z"))
        await stage.restart()
        await stage.eventually("made anew", lambda: stage.data(key) == b"data 1")
        stage.api.change("Secret", key, _due("not a time"))
        await stage.restart()
        await stage.eventually("made anew", lambda: stage.data(key) == b"data 2")

    play(cast, story)


@staged
def test_data_in_use_stay_when_new_ones_cannot_be_made(cast: Cast, script: Script) -> None:
    async def story(stage: BootstrapStage) -> None:
        key = await _refreshed_pool(stage, script, 3600)
        script.answer = lambda config: Waiting("NoTokens", requeue_after=0.05)
        stage.api.change("Secret", key, _due("2020-01-01T00:00:00Z"))
        await stage.restart()
        await stage.says(key, "NoTokens")
        assert stage.created(key), "that there are data never flips back"
        assert stage.data(key) == b"data 0"
        assert not {"failureReason", "failureMessage"} & stage.config(key)["status"].keys()

    play(cast, story)


@staged
def test_data_of_a_machine_are_made_once(cast: Cast, script: Script) -> None:
    async def story(stage: BootstrapStage) -> None:
        cluster = stage.add_cluster()
        stage.control_plane_is_initialized(cluster)
        script.answer = lambda config: BootstrapDocument(b"data", refresh_after=1)
        key = stage.add_machine(cluster, "m1")
        await stage.has_data(key)
        await asyncio.sleep(1.5)
        changed = {"spec": {"verbosity": 2}}
        stage.api.change(stage.kind.resource.kind, key, changed)
        stage.api.change("Machine", key, {"spec": {"version": "v1.35.0"}})
        await stage.quiet()
        assert len(script.calls) == 1

    play(cast, story)


async def _refreshed_pool(stage: BootstrapStage, script: Script, seconds: float) -> Key:
    def count(config: Config) -> BootstrapDocument:
        return BootstrapDocument(f"data {len(script.calls) - 1}".encode(), refresh_after=seconds)

    script.answer = count
    cluster = stage.add_cluster()
    stage.control_plane_is_initialized(cluster)
    key = stage.add_pool(cluster)
    await stage.has_data(key)
    return key


def _due(when: str) -> JSON:
    return {"metadata": {"annotations": {"bootstrap.cluster.x-k8s.io/refresh-at": when}}}
