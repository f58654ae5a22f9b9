"""Metrics under the names of controller-runtime and client-go, for dashboards that exist already.

Metrics that the runtime counts under another name are derived from it whenever metrics are
rendered, so that nothing is counted twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.metrics_core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

METHODS: Final[Mapping[str, str]] = {
    "create": "POST",
    "apply": "PATCH",
    "patch": "PATCH",
    "patch_status": "PATCH",
    "delete": "DELETE",
}
"""HTTP methods of the verbs that do not use GET."""
_NO_RESPONSE: Final = "<error>"
"""Value of client-go's label ``code`` for requests without a response."""
_TIME: Final = ("controller_runtime_reconcile_time_seconds", "How long reconciles took.")
_WORKERS: Final = ("controller_runtime_active_workers", "Workers that run a reconcile.")


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldMetrics(Collector):
    """Derives metrics with the names of controller-runtime and client-go from the runtime's own."""

    limits: Gauge
    """Maximum numbers of workers, which only controllers have."""
    times: Histogram
    workers: Gauge
    requests: Counter
    api_server: Callable[[], str]
    """Function that returns the API server's host."""

    def collect(self) -> Iterable[Metric]:
        """Return the derived metrics, for controllers only: webhooks are not among them."""
        controllers = {
            sample.labels["controller"]
            for family in self.limits.collect()
            for sample in family.samples
        }
        for family in self.times.collect():
            yield _rename(family, *_TIME, controllers)
        for family in self.workers.collect():
            yield _rename(family, *_WORKERS, controllers)
        yield self._requests()

    def _requests(self) -> Metric:
        counts: dict[tuple[str, str], float] = defaultdict(float)
        for family in self.requests.collect():
            for sample in family.samples:
                if sample.name.endswith("_total"):
                    verb, code = sample.labels["verb"], sample.labels["code"]
                    key = _NO_RESPONSE if code == "none" else code, METHODS.get(verb, "GET")
                    counts[key] += sample.value
        found = CounterMetricFamily(
            "rest_client_requests",
            "Requests to the API server, by status code, method and host.",
            labels=("code", "method", "host"),
        )
        for (code, method), value in sorted(counts.items()):
            found.add_metric((code, method, self.api_server()), value)
        return found


def _rename(family: Metric, name: str, description: str, controllers: set[str]) -> Metric:
    renamed = Metric(name, description, family.type)
    for sample in family.samples:
        if sample.labels["controller"] in controllers:
            suffix = sample.name.removeprefix(family.name)
            renamed.samples.append(sample._replace(name=name + suffix))
    return renamed
