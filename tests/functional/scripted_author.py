"""Put into a generated repository: its controllers with authors who answer as a script says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from cluster_api_provider_acme import (
    Address,
    Condition,
    Gone,
    InfraMachine,
    InfraMachineState,
    Waiting,
)
from cluster_api_provider_acme.controllers.acme_machine import AcmeMachineReconciler

from .conftest import Play
from .fake_core import condition, provisioned
from .stage import Stage

Answer = Any
SOON = 0.05


class Script:
    """Answers of the author's code; the last one is repeated."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.calls: list[InfraMachine[Any]] = []

    def __call__(self, reconciler: object, machine: InfraMachine[Any]) -> Answer:
        self.calls.append(machine)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer(machine) if callable(answer) else answer


@pytest.fixture
def normal(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Script]:
    def use(*answers: Answer) -> Script:
        script = Script(*answers)
        hook = lambda self, machine: script(self, machine)  # noqa: E731
        monkeypatch.setattr(AcmeMachineReconciler, "reconcile_normal", hook)
        return script

    return use


@pytest.fixture
def delete(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Script]:
    def use(*answers: Answer) -> Script:
        script = Script(*answers)
        hook = lambda self, machine: script(self, machine)  # noqa: E731
        monkeypatch.setattr(AcmeMachineReconciler, "reconcile_delete", hook)
        return script

    return use


UP = InfraMachineState(
    provider_id="acme://1", addresses=[Address("InternalIP", "10.0.0.1")], requeue_after=SOON
)


async def machine_in(stage: Stage) -> Any:
    cluster = await stage.running_cluster()
    return stage.core.add_machine(cluster)


def ready(stage: Stage, key: Any) -> tuple[str, str]:
    return condition(stage.core.infra_machine(key), "Ready")


def test_trouble_after_the_start_leaves_it_provisioned(play: Play, normal: Any) -> None:
    """Proves: IM-03, IM-10, ST-06."""
    down = replace(UP, ready=False, reason="PowerLost", message="no power", addresses=[])
    script = normal(UP, down)

    async def story(stage: Stage) -> None:
        key = await machine_in(stage)
        await stage.eventually("down", lambda: ready(stage, key) == ("False", "PowerLost"))
        obj = stage.core.infra_machine(key)
        assert provisioned(obj)
        assert "addresses" not in obj["status"]

        script.answers = [replace(UP, addresses=[Address("InternalIP", "10.0.0.9")])]
        await stage.eventually("up", lambda: ready(stage, key) == ("True", "Ready"))
        assert stage.core.infra_machine(key)["status"]["addresses"][0]["address"] == "10.0.0.9"

    play(story)


def test_waiting_after_the_start_leaves_it_provisioned(play: Play, normal: Any) -> None:
    """Proves: IM-03, ST-06."""
    normal(UP, Waiting("Rebooting", "wait for it", SOON))

    async def story(stage: Stage) -> None:
        key = await machine_in(stage)
        await stage.eventually("waiting", lambda: ready(stage, key) == ("False", "Rebooting"))
        assert provisioned(stage.core.infra_machine(key))
        assert stage.core.infra_machine(key)["status"]["addresses"]

    play(story)


def test_a_short_wait_is_not_written(play: Play, normal: Any) -> None:
    normal(Waiting("Booting", "", 0.01), Waiting("Booting", "", 0.01), UP)

    async def story(stage: Stage) -> None:
        key = await machine_in(stage)
        await stage.eventually("up", lambda: provisioned(stage.core.infra_machine(key)))
        kind = stage.machine_kind.resource.kind
        assert stage.api.written(kind, key) == ["patch", "patch", "patch_status"]

    play(story)


def test_an_exception_is_told_and_tried_again(play: Play, normal: Any) -> None:
    script = normal(OSError("the cloud is on fire"))

    async def story(stage: Stage) -> None:
        key = await machine_in(stage)
        await stage.eventually("told", lambda: ready(stage, key) == ("False", "InternalError"))
        (entry,) = (
            c for c in stage.core.infra_machine(key)["status"]["conditions"] if c["type"] == "Ready"
        )
        assert entry["message"] == "OSError: the cloud is on fire"
        await stage.eventually("an event", lambda: stage.api.all("Event"))
        (event,) = stage.api.all("Event")
        assert (event["type"], event["reason"]) == ("Warning", "InternalError")
        await stage.eventually("again", lambda: len(script.calls) > 1)

        script.answers = [UP]
        await stage.eventually("up", lambda: ready(stage, key) == ("True", "Ready"))

    play(story)


def test_another_provider_id_is_refused(play: Play, normal: Any) -> None:
    """Proves: IM-01."""
    normal(UP, replace(UP, provider_id="acme://2"))

    async def story(stage: Stage) -> None:
        key = await machine_in(stage)
        expected = ("False", "ProviderIDChanged")
        await stage.eventually("refused", lambda: ready(stage, key) == expected)
        assert stage.core.infra_machine(key)["spec"]["providerID"] == "acme://1"
        assert provisioned(stage.core.infra_machine(key))

    play(story)


@pytest.mark.parametrize("answer", [None, "acme://1", Gone()])
def test_a_wrong_answer_is_refused(play: Play, normal: Any, answer: object) -> None:
    normal(answer)

    async def story(stage: Stage) -> None:
        key = await machine_in(stage)
        await stage.eventually("refused", lambda: ready(stage, key) == ("False", "InvalidResult"))

    play(story)


def test_what_the_schema_refuses_is_told(play: Play, normal: Any) -> None:
    state = replace(UP)
    object.__setattr__(state, "provider_id", "x" * 600)
    normal(state)

    async def story(stage: Stage) -> None:
        key = await machine_in(stage)
        await stage.eventually("refused", lambda: ready(stage, key) == ("False", "InvalidResult"))

    play(story)


def test_deletion_may_take_its_time(play: Play, normal: Any, delete: Any) -> None:
    """Proves: IM-25, SM-08, ST-06."""
    normal(UP)
    script = delete(RuntimeError("busy"), Waiting("ShuttingDown", "", SOON))

    async def story(stage: Stage) -> None:
        key = await machine_in(stage)
        await stage.eventually("up", lambda: provisioned(stage.core.infra_machine(key)))
        stage.api.remove(stage.machine_kind.resource.kind, key)
        await stage.eventually("waiting", lambda: ready(stage, key) == ("False", "ShuttingDown"))
        assert provisioned(stage.core.infra_machine(key))

        script.answers = [Gone()]
        await stage.eventually("gone", lambda: stage.is_gone(stage.machine_kind, key))

    play(story)


def test_conditions_of_the_authors(play: Play, normal: Any) -> None:
    own = Condition(type="DisksHealthy", status=None, reason="NotChecked")
    normal(replace(UP, conditions=[own]))

    async def story(stage: Stage) -> None:
        key = await machine_in(stage)
        expected = ("Unknown", "NotChecked")
        await stage.eventually(
            "told", lambda: condition(stage.core.infra_machine(key), "DisksHealthy") == expected
        )

    play(story)


def test_bootstrap_data_for_synchronous_code(play: Play, normal: Any) -> None:
    seen = []

    def answer(machine: InfraMachine[Any]) -> InfraMachineState:
        seen.append(machine.bootstrap_data())
        return UP

    normal(answer)

    async def story(stage: Stage) -> None:
        key = await machine_in(stage)
        await stage.eventually("up", lambda: provisioned(stage.core.infra_machine(key)))
        assert (seen[0].text, seen[0].format) == ("#cloud-config", "cloud-config")

    play(story)


def test_asynchronous_code(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    async def reconcile(self: object, machine: InfraMachine[Any]) -> InfraMachineState:
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="_async"):
            machine.bootstrap_data()
        seen.append(await machine.bootstrap_data_async())
        return UP

    monkeypatch.setattr(AcmeMachineReconciler, "reconcile_normal", reconcile)

    async def story(stage: Stage) -> None:
        key = await machine_in(stage)
        await stage.eventually("up", lambda: provisioned(stage.core.infra_machine(key)))
        assert seen[0].value == b"#cloud-config"

    play(story)


def test_bootstrap_data_that_are_not_there_are_waited_for(play: Play, normal: Any) -> None:
    """Proves: IM-21."""

    def answer(machine: InfraMachine[Any]) -> InfraMachineState:
        machine.bootstrap_data()
        return UP

    normal(answer)

    async def story(stage: Stage) -> None:
        cluster = await stage.running_cluster()
        key = stage.core.add_machine(cluster, bootstrap=False)
        # A machine of a pool names no Secret of its own (IM-21).
        stage.api.change("Machine", key, {"spec": {"bootstrap": {"dataSecretName": ""}}})
        expected = ("False", "WaitingForBootstrapData")
        await stage.eventually("waiting", lambda: ready(stage, key) == expected)

    play(story)


def test_what_the_author_is_given(play: Play, normal: Any) -> None:
    """Proves: IM-06."""
    script = normal(UP)

    async def story(stage: Stage) -> None:
        cluster = await stage.running_cluster()
        await stage.stop()
        key = stage.core.add_machine(cluster)
        labels = {"metadata": {"labels": {"cluster.x-k8s.io/control-plane": ""}}}
        stage.api.change("Machine", key, {**labels, "spec": {"failureDomain": "zone-2"}})
        stage.start()
        await stage.eventually("up", lambda: provisioned(stage.core.infra_machine(key)))
        given = script.calls[0]
        assert (given.name, given.namespace, given.provider_id) == (key.name, key.namespace, None)
        assert given.external_id.startswith(f"{key.name}.")
        assert (given.failure_domain, given.is_control_plane) == ("zone-2", True)
        assert (given.cluster.name, given.machine.name) == (cluster.name, key.name)
        assert given.infra_cluster is not None
        assert given.infra_cluster.name == cluster.name
        assert set(given.credentials) == {"token"}
        await stage.eventually("again", lambda: script.calls[-1].provider_id == "acme://1")

    play(story)
