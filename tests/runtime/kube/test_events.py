"""Events: requests to the server, rate limits, and that sending never blocks."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from capsmith_runtime.errors import create_api_error
from capsmith_runtime.kube.client import JSON, KubeClient, ResourceType
from capsmith_runtime.kube.events import EVENT, EventRecorder
from capsmith_runtime.kube.metrics import Metrics
from tests.runtime.support.following import connected, sample
from tests.runtime.support.server import Api
from tests.runtime.support.waiting import eventually, running


class Recipient:
    """The part of a client that events need; refuses the first `refusals` of them."""

    def __init__(self, refusals: int = 0) -> None:
        self.events: list[JSON] = []
        self._refusals = refusals

    async def create(self, resource: ResourceType, obj: JSON) -> JSON:
        assert resource == EVENT
        if self._refusals:
            self._refusals -= 1
            raise create_api_error(403, "Forbidden", "the namespace is being deleted")
        self.events.append(obj)
        return obj

    def notes(self) -> list[str]:
        return [event["note"] for event in self.events]


def recorder(client: object, metrics: Metrics | None = None, **options: Any) -> EventRecorder:
    port = cast(KubeClient, client)
    return EventRecorder(port, "tests", "tests-0", metrics or Metrics(), **options)


def widget(name: str = "a", namespace: str = "default") -> JSON:
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-of-{name}"}
    return {"apiVersion": "runtime.capsmith.test/v1", "kind": "Widget", "metadata": metadata}


def dropped(metrics: Metrics, cause: str) -> float:
    return sample(metrics, f'events_dropped_total{{cause="{cause}"}}')


async def test_the_server_takes_it(api: Api, kubeconfig: Path, namespace: str) -> None:
    # The longest name that a kind may have, cut where a dot would follow a dot.
    long = f"{'a' * 199}.{'b' * 53}"
    note = "x" * 2000 + "\udcff"
    async with connected(kubeconfig) as client:
        events = recorder(client)
        async with running(events.run()):
            for name in ("a", long):
                events.warn(api.create(namespace, name), "Broken", note)
            found = await eventually(lambda: _events(api, namespace, 2))
    assert {event["regarding"]["name"] for event in found} == {"a", long}
    for event in found:
        assert (event["type"], event["reason"], event["action"]) == (
            "Warning",
            "Broken",
            "Reconcile",
        )
        assert event["note"] == "x" * 1024
        assert event["reportingController"] == "tests"
        regarded = api.get(namespace, event["regarding"]["name"])
        assert event["regarding"]["uid"] == regarded["metadata"]["uid"]


async def test_cluster_scoped_objects_have_theirs_in_default(api: Api, kubeconfig: Path) -> None:
    crd = api.client.get(
        "apiextensions.k8s.io/v1", "CustomResourceDefinition", "widgets.runtime.capsmith.test"
    )
    async with connected(kubeconfig) as client:
        events = recorder(client)
        async with running(events.run()):
            events.warn(crd, "Broken", "whatever")
            (event,) = await eventually(lambda: _events(api, "default", 1))
    assert event["regarding"]["kind"] == "CustomResourceDefinition"
    assert "namespace" not in event["regarding"]


async def test_repeated_events_are_sent_once() -> None:
    metrics, client = Metrics(), Recipient()
    events = recorder(client, metrics)
    async with running(events.run()):
        for _ in range(5):
            events.warn(widget(), "Broken", "the disk is full")
        events.warn(widget(), "Broken", "the disk is gone")
        events.warn(widget("b"), "Broken", "the disk is full")
        await eventually(lambda: len(client.events) == 3)
    assert client.notes() == ["the disk is full", "the disk is gone", "the disk is full"]
    assert dropped(metrics, "repeated") == 4


async def test_repeated_events_are_sent_again_after_a_while() -> None:
    client = Recipient()
    events = recorder(client, repeat_seconds=0.05)
    async with running(events.run()):
        events.warn(widget(), "Broken", "the disk is full")

        def told_again() -> bool:
            events.warn(widget(), "Broken", "the disk is full")
            return len(client.events) == 2

        await eventually(told_again)


async def test_a_storm_is_cut_off() -> None:
    metrics, client = Metrics(), Recipient()
    events = recorder(client, metrics, burst=5, per_second=0.0)
    async with running(events.run()):
        for number in range(100):
            events.warn(widget(f"w{number}"), "Broken", "the cloud is down")
            await asyncio.sleep(0)
        await eventually(lambda: len(client.events) == 5)
    assert dropped(metrics, "rate") == 95


async def test_a_storm_in_one_namespace_does_not_silence_another() -> None:
    metrics, client = Metrics(), Recipient()
    events = recorder(client, metrics, burst=5, per_second=0.0)
    for number in range(100):
        events.warn(widget(f"w{number}", "outage"), "Broken", f"request {number} failed")
    events.warn(widget("a", "other"), "Broken", "the quota is used up")
    async with running(events.run()):
        await eventually(lambda: len(client.events) == 6)
    assert client.notes()[-1] == "the quota is used up"
    assert dropped(metrics, "rate") == 95


async def test_dropped_events_are_sent_when_there_is_capacity_again() -> None:
    client = Recipient()
    events = recorder(client, burst=1, per_second=100.0)
    async with running(events.run()):
        events.warn(widget("a"), "Broken", "down")
        events.warn(widget("b"), "Broken", "down")

        def both_told() -> bool:
            events.warn(widget("b"), "Broken", "down")
            return [event["regarding"]["name"] for event in client.events] == ["a", "b"]

        await eventually(both_told)


@pytest.mark.parametrize("count", [1, 200])
def test_callers_do_not_wait_when_nothing_is_sent(count: int) -> None:
    """Without `run` the queue fills up; `warn` must return all the same."""
    metrics = Metrics()
    events = recorder(Recipient(), metrics, burst=25, per_second=0.0)
    for number in range(count):
        events.warn(widget(f"w{number}"), "Broken", "down")
    assert dropped(metrics, "rate") == max(0, count - 25)


def test_only_the_part_of_a_note_that_is_sent_is_remembered() -> None:
    """A thousand notes of a MiB each would take a GB."""
    metrics = Metrics()
    events = recorder(Recipient(), metrics)
    for end in ("a", "b"):
        events.warn(widget(), "Broken", "x" * 2000 + end)
    assert dropped(metrics, "repeated") == 1


async def test_a_refusal_is_counted_and_the_next_is_sent() -> None:
    metrics, client = Metrics(), Recipient(refusals=1)
    events = recorder(client, metrics)
    async with running(events.run()):
        events.warn(widget(), "Broken", "first")
        events.warn(widget(), "Broken", "second")
        await eventually(lambda: client.notes() == ["second"])
    assert dropped(metrics, "refused") == 1


async def test_memory_of_sent_events_is_bounded() -> None:
    client = Recipient()
    events = recorder(client, burst=10_000)
    async with running(events.run()):
        for number in range(1001):
            events.warn(widget(f"w{number}"), "Broken", "down")
        await eventually(lambda: len(client.events) == 1001)
        # The oldest event was forgotten, so it is sent again; the newest was not.
        events.warn(widget("w1000"), "Broken", "down")
        events.warn(widget("w0"), "Broken", "down")
        await eventually(lambda: len(client.events) == 1002)
    assert client.events[-1]["regarding"]["name"] == "w0"


def _events(api: Api, namespace: str, count: int) -> list[JSON]:
    found = api.client.list("events.k8s.io/v1", "Event", namespace)
    return found if len(found) == count else []
