"""Metrics under the names that dashboards for controller-runtime use."""

from __future__ import annotations

import asyncio

import pytest

from capsmith_runtime.errors import create_api_error
from capsmith_runtime.kube.controller import Controller, Result
from capsmith_runtime.kube.executor import HandlerExecutor
from capsmith_runtime.kube.metrics import MAX_IDENTITIES, CallMetrics, Metrics
from capsmith_runtime.kube.requeue import DeferredError
from capsmith_runtime.kube.workqueue import WorkQueue
from tests.runtime.support.clock import virtually
from tests.runtime.support.following import sample
from tests.runtime.support.waiting import running

OUTCOMES: dict[str, tuple[str, Result | Exception]] = {
    "done": ("success", Result()),
    "polled": ("requeue_after", Result(requeue_after=600)),
    "throttled": ("requeue_after", DeferredError("later", seconds=600)),
    "waiting": ("requeue", DeferredError("a turn", subscribe=lambda wake, priority: None)),
    "broken": ("error", create_api_error(500, "InternalError", "no", 600)),
}


@pytest.mark.parametrize("key", OUTCOMES)
def test_reconciles_are_counted_by_result(key: str) -> None:
    metrics = Metrics()
    result, outcome = OUTCOMES[key]

    async def reconcile(_: str) -> Result:
        if isinstance(outcome, Result):
            return outcome
        raise outcome

    async def scenario() -> None:
        made = Controller("c", WorkQueue[str]("c", metrics), reconcile, metrics, concurrency=3)
        async with running(made.run()):
            made.queue.add(key)
            await asyncio.sleep(1)
            await made.stop(1)

    virtually(scenario())
    counted = {
        each: sample(
            metrics, f'controller_runtime_reconcile_total{{controller="c",result="{each}"}}'
        )
        for each in ("success", "requeue", "requeue_after", "error")
    }
    assert counted == {**dict.fromkeys(counted, 0.0), result: 1.0}
    errors = sample(metrics, 'controller_runtime_reconcile_errors_total{controller="c"}')
    assert errors == (result == "error")
    limit = 'controller_runtime_max_concurrent_reconciles{controller="c"}'
    assert sample(metrics, limit) == 3


def test_durations_and_workers_are_those_of_controllers_only() -> None:
    metrics = Metrics()
    seen: list[float] = []

    async def reconcile(_: str) -> Result:
        seen.append(sample(metrics, 'controller_runtime_active_workers{controller="c"}'))
        return Result()

    async def scenario() -> None:
        made = Controller("c", WorkQueue[str]("c", metrics), reconcile, metrics)
        async with running(made.run()):
            made.queue.add("a")
            await asyncio.sleep(1)
            await made.stop(1)

    metrics.reconcile_seconds.labels("a webhook").observe(1)
    virtually(scenario())
    text = metrics.render().decode()

    assert seen == [1]
    count = 'controller_runtime_reconcile_time_seconds_count{controller="c"}'
    assert sample(metrics, count) == sample(
        metrics, 'reconcile_duration_seconds_count{controller="c"}'
    )
    assert 'controller_runtime_reconcile_time_seconds_bucket{controller="c",le="+Inf"} 1.0' in text
    assert 'controller_runtime_reconcile_time_seconds_count{controller="a webhook"}' not in text


def test_terminal_failures_have_the_name_of_controller_runtime() -> None:
    metrics = Metrics()
    metrics.terminal_failures.labels("c").inc(2)
    name = 'controller_runtime_terminal_reconcile_errors_total{controller="c"}'
    assert sample(metrics, name) == 2


def test_time_in_queue_and_in_process() -> None:
    metrics = Metrics()

    async def scenario() -> None:
        queue = WorkQueue[str]("q", metrics)
        queue.add("a")
        await asyncio.sleep(3)
        queue.add("a")
        assert await queue.get() == "a"
        await asyncio.sleep(2)
        assert sample(metrics, 'workqueue_unfinished_work_seconds{name="q"}') == pytest.approx(2)
        name = 'workqueue_longest_running_processor_seconds{name="q"}'
        assert sample(metrics, name) == pytest.approx(2)
        queue.add("a")
        await asyncio.sleep(4)
        queue.done("a")
        assert await queue.get() == "a"
        queue.add_rate_limited("a")
        queue.done("a")
        assert sample(metrics, name) == 0
        queue.close()

    virtually(scenario())
    assert sample(metrics, 'workqueue_adds_total{name="q"}') == 2
    assert sample(metrics, 'workqueue_retries_total{name="q"}') == 1
    assert sample(metrics, 'workqueue_queue_duration_seconds_sum{name="q"}') == pytest.approx(7)
    assert sample(metrics, 'workqueue_work_duration_seconds_sum{name="q"}') == pytest.approx(6)


def test_requests_have_the_labels_of_client_go() -> None:
    metrics = Metrics()
    metrics.api_server = "10.0.0.1:443"
    for verb, code in (("get", "200"), ("list", "200"), ("apply", "409"), ("watch", "none")):
        metrics.requests.labels(verb, code).inc()

    for code, method, number in (("200", "GET", 2), ("409", "PATCH", 1), ("<error>", "GET", 1)):
        labels = f'code="{code}",host="10.0.0.1:443",method="{method}"'
        assert sample(metrics, f"rest_client_requests_total{{{labels}}}") == number


async def test_calls_are_measured_by_kind_and_identity() -> None:
    metrics = Metrics()
    executor = HandlerExecutor(metrics)
    seen: list[float] = []

    async def reconcile(_: str) -> Result:
        number: int = await executor.call(hook, 1, tenant="default/one")
        assert number == 1
        return Result()

    async def hook(number: int) -> int:
        name = 'identity_hooks_in_flight{controller="AcmeMachine",identity="default/one"}'
        seen.append(sample(metrics, name))
        made.queue.close()
        return number

    queue = WorkQueue[str]("AcmeMachine", metrics)
    made = Controller("AcmeMachine", queue, reconcile, metrics)
    queue.add("a")
    await made.run()

    labels = 'controller="AcmeMachine",identity="default/one"'
    assert seen == [1]
    assert sample(metrics, f"identity_hooks_in_flight{{{labels}}}") == 0
    assert sample(metrics, f"identity_hook_duration_seconds_count{{{labels}}}") == 1
    hooks = f'controller="AcmeMachine",hook="{hook.__qualname__}"'
    assert sample(metrics, f"hook_duration_seconds_count{{{hooks}}}") == 1


def test_the_number_of_identities_with_metrics_is_limited() -> None:
    metrics = Metrics()
    calls = CallMetrics(metrics)

    with calls.measure("c", "hook", "busy"):
        for number in range(MAX_IDENTITIES + 50):
            with calls.measure("c", "hook", f"identity-{number}"):
                pass
        labels = 'controller="c",identity="busy"'
        assert sample(metrics, f"identity_hooks_in_flight{{{labels}}}") == 1

    text = metrics.render().decode()
    counts = [line for line in text.splitlines() if line.startswith("identity_hooks_in_flight{")]
    assert len(counts) == MAX_IDENTITIES
    assert not any('identity="identity-0"' in line for line in counts)
