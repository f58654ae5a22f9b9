"""Metrics of the runtime and of the author on one page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from prometheus_client import REGISTRY, Counter
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from capsmith_runtime.kube.metrics import Metrics


@pytest.fixture
def counters() -> Iterator[list[Counter]]:
    made = [
        Counter("author_servers_created", "Servers that the provider has created."),
        Counter("events_dropped", "A name that the runtime has, too.", ["cause"]),
    ]
    yield made
    for counter in made:
        REGISTRY.unregister(counter)


def test_metrics_of_the_default_registry_are_shown(counters: list[Counter]) -> None:
    counters[0].inc(3)
    families = list(text_string_to_metric_families(Metrics().render().decode()))
    values = {sample.name: sample.value for family in families for sample in family.samples}

    assert values["author_servers_created_total"] == 3
    assert values["process_resident_memory_bytes"] > 0
    assert values["leader"] == 0


def test_each_name_appears_once(counters: list[Counter]) -> None:
    counters[1].labels("author").inc()
    text = Metrics().render().decode()
    headers = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE ")]

    assert len(headers) == len(set(headers))
    assert 'cause="author"' not in text


def test_the_release_that_runs_is_shown() -> None:
    metrics = Metrics()
    metrics.show_build("cluster-api-provider-acme", "0.2.1", "0.2.0")
    labels = 'provider="cluster-api-provider-acme",runtime="0.2.0",version="0.2.1"'
    assert f"build_info{{{labels}}} 1.0" in metrics.render().decode()


class CloudCollector(Collector):
    """A collector of the author that reads from a cloud."""

    is_away = False

    def collect(self) -> Iterator[Metric]:
        """Return no metric, or raise if the cloud is away."""
        if self.is_away:
            raise OSError("no route to the cloud")
        return iter(())


def test_a_failing_collector_hides_no_metrics_of_the_runtime(
    caplog: pytest.LogCaptureFixture,
) -> None:
    collector = CloudCollector()
    REGISTRY.register(collector)
    collector.is_away = True
    try:
        text = Metrics().render().decode()
    finally:
        REGISTRY.unregister(collector)

    assert "\nleader 0.0\n" in text
    assert "no route to the cloud" in caplog.text
