"""Prometheus metrics of the runtime, and the author's metrics from the default registry.

Each Metrics object has a separate registry for the runtime's metrics, so that nothing global is
shared.
"""

from __future__ import annotations

import contextlib
from collections import Counter as Counts
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from prometheus_client import (
    REGISTRY,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Summary,
    generate_latest,
)
from prometheus_client.metrics_core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from capsmith_runtime.kube.clock import monotonic
from capsmith_runtime.kube.log import describe_error, get_logger

_log = get_logger("metrics")
_LATENCY = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_QUEUE_LATENCY = tuple(10.0**exponent for exponent in range(-8, 4))
"""Buckets of controller-runtime's work queue histograms, in seconds."""
MAX_IDENTITIES: Final = 200
"""Maximum number of (kind, identity) pairs with metrics.

Without a limit, identities of short-lived namespaces would add time series for as long as a manager
runs.
"""
METHODS: Final[Mapping[str, str]] = {
    "create": "POST",
    "apply": "PATCH",
    "patch": "PATCH",
    "patch_status": "PATCH",
    "delete": "DELETE",
}
"""HTTP methods, keyed by request verb, except for the verbs that use GET."""
_NO_RESPONSE: Final = "<error>"
"""Value of client-go's label ``code`` for requests without a response."""
_TIME: Final = ("controller_runtime_reconcile_time_seconds", "How long reconciles took.")
_WORKERS: Final = ("controller_runtime_active_workers", "Workers that run a reconcile.")
_TERMINAL: Final = (
    "controller_runtime_terminal_reconcile_errors",
    "Reconciles that ended with a failure that no retry resolves.",
)


class Metrics:
    """The Prometheus metrics of one manager process."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.api_server = ""
        """The API server's host, for client-go metrics, or an empty string if unknown."""
        self.requests = self._counter(
            "kube_requests", "Requests to the API server.", "verb", "code"
        )
        workload = "Requests to API servers of workload clusters."
        self.workload_requests = self._counter("workload_kube_requests", workload, "verb", "code")
        self.events_dropped = self._counter(
            "events_dropped", "Kubernetes events that were not sent.", "cause"
        )
        rewritten = "Objects rewritten because they may be stored in another version."
        self.objects_rewritten = self._counter("stored_objects_rewritten", rewritten, "kind")
        self.certificate_expiration = self._gauge(
            "certificate_expiration_timestamp_seconds",
            "When the certificate that is served expires, as Unix time.",
            "server",
        )
        self._build = self._gauge(
            "build_info", "1; which release runs.", "provider", "version", "runtime"
        )
        self._create_leader_metrics()
        self._create_controller_metrics()
        self._create_queue_metrics()
        self._create_hook_metrics()
        self._create_webhook_metrics()
        self._registry.register(
            FieldMetrics(
                limits=self.max_concurrent_reconciles,
                times=self.reconcile_seconds,
                workers=self.reconciles_active,
                terminal_failures=self.terminal_failures,
                requests=self.requests,
                api_server=lambda: self.api_server,
            )
        )

    def _create_leader_metrics(self) -> None:
        self.leader = self._gauge("leader", "1 while this process holds the lease.")
        self.leader_of = self._gauge(
            "leader_election_master_status",
            "1 while this process holds the lease of this name.",
            "name",
        )

    def _create_controller_metrics(self) -> None:
        self.reconcile_seconds = Histogram(
            "reconcile_duration_seconds",
            "How long reconciles took.",
            ["controller"],
            buckets=_LATENCY,
            registry=self._registry,
        )
        self.reconcile_errors = self._counter(
            "reconcile_errors", "Failed reconciles.", "controller", "error"
        )
        terminal = "Reconciles that ended with a failure that no retry resolves."
        self.terminal_failures = self._counter("terminal_failures", terminal, "controller")
        self.terminations_held = self._gauge(
            "terminations_held", "Terminated machines that are not given up because too many are."
        )
        self.reconciles_active = self._gauge(
            "reconciles_active", "Reconciles that run now.", "controller"
        )
        deferred = "Reconciles that had to wait for a rate limit or a delay."
        self.reconciles_deferred = self._counter("reconciles_deferred", deferred, "controller")
        self.informer_objects = self._gauge("informer_objects", "Objects in the cache.", "kind")
        self.informer_restarts = self._counter(
            "informer_restarts", "Watches that ended.", "kind", "cause"
        )
        self.reconciles = self._counter(
            "controller_runtime_reconcile", "Reconciles, by result.", "controller", "result"
        )
        self.failed_reconciles = self._counter(
            "controller_runtime_reconcile_errors", "Failed reconciles.", "controller"
        )
        self.max_concurrent_reconciles = self._gauge(
            "controller_runtime_max_concurrent_reconciles",
            "Maximum number of concurrent reconciles.",
            "controller",
        )

    def _create_queue_metrics(self) -> None:
        self.queue_depth = self._gauge("workqueue_depth", "Keys that wait for a worker.", "name")
        self.queue_adds = self._counter("workqueue_adds", "Keys added to the queue.", "name")
        self.queue_retries = self._counter(
            "workqueue_retries", "Keys added again after a failure.", "name"
        )
        self.queue_seconds = self._queue_histogram(
            "workqueue_queue_duration_seconds", "How long keys waited for a worker."
        )
        self.work_seconds = self._queue_histogram(
            "workqueue_work_duration_seconds", "How long keys were in process."
        )
        self.unfinished_work = self._gauge(
            "workqueue_unfinished_work_seconds",
            "Seconds for which the keys in process have been processed, summed.",
            "name",
        )
        self.longest_running = self._gauge(
            "workqueue_longest_running_processor_seconds",
            "Seconds for which the longest reconcile has been running.",
            "name",
        )

    def _create_hook_metrics(self) -> None:
        self.hook_timeouts = self._counter(
            "hook_timeouts", "Author hooks that exceeded their time-out.", "hook"
        )
        self.hooks_in_flight = self._gauge(
            "hooks_in_flight", "Author hooks that run within their time-out.", "hook"
        )
        self.hook_seconds = Histogram(
            "hook_duration_seconds",
            "How long author hooks took, until they ended or ran out of time.",
            ["controller", "hook"],
            buckets=_LATENCY,
            registry=self._registry,
        )
        self.identity_calls = self._gauge(
            "identity_hooks_in_flight",
            "Author hooks that run within their time-out, by kind and identity.",
            "controller",
            "identity",
        )
        self.identity_seconds = Summary(
            "identity_hook_duration_seconds",
            "How long author hooks took, by kind and identity.",
            ["controller", "identity"],
            registry=self._registry,
        )
        self.identity_pauses = self._counter(
            "identity_pauses",
            "Pauses of all calls of an identity: rate-limited, or calls that hang.",
            "cause",
        )
        self.identities_paused = self._gauge(
            "identities_paused", "Identities whose calls are paused now.", "cause"
        )
        self.hooks_abandoned = self._gauge(
            "hooks_abandoned", "Hooks past their time-out that still run."
        )

    def _create_webhook_metrics(self) -> None:
        self.webhook_requests = self._counter(
            "controller_runtime_webhook_requests",
            "Calls of webhooks, by path and status of the response.",
            "webhook",
            "code",
        )
        self.webhook_seconds = Histogram(
            "controller_runtime_webhook_latency_seconds",
            "How long calls of webhooks took, by path.",
            ["webhook"],
            buckets=_LATENCY,
            registry=self._registry,
        )
        self.webhooks_in_flight = self._gauge(
            "controller_runtime_webhook_requests_in_flight",
            "Calls of webhooks that run now, by path.",
            "webhook",
        )

    def render(self) -> bytes:
        """Return the metrics of the runtime and the author in Prometheus text format.

        If a collector of the author raises an error, it is logged, and the author's metrics are
        left out.
        """
        authors = CollectorRegistry(auto_describe=False)
        authors.register(_OtherMetrics({each.name for each in self._registry.collect()}))
        runtime = generate_latest(self._registry)
        try:
            return runtime + generate_latest(authors)
        except Exception as error:
            # Alerts on the runtime's metrics have to work all the same.
            _log.error("collector failed", error=describe_error(error), exc_info=error)
            return runtime

    def _counter(self, name: str, description: str, *labels: str) -> Counter:
        return Counter(name, description, labels, registry=self._registry)

    def _queue_histogram(self, name: str, description: str) -> Histogram:
        return Histogram(
            name, description, ["name"], buckets=_QUEUE_LATENCY, registry=self._registry
        )

    def show_build(self, provider: str, version: str, runtime: str) -> None:
        """Set the metric ``build_info`` to the versions of the provider and the runtime."""
        self._build.labels(provider, version, runtime).set(1)

    def _gauge(self, name: str, description: str, *labels: str) -> Gauge:
        return Gauge(name, description, labels, registry=self._registry)


class _OtherMetrics(Collector):
    """The default registry without the runtime's metric names; each name may appear only once."""

    def __init__(self, names: set[str]) -> None:
        self._names = names

    def collect(self) -> Iterable[Metric]:
        """Return the author's metrics, and the standard metrics of the process and of Python."""
        return (each for each in REGISTRY.collect() if each.name not in self._names)


class WebhookMetrics:
    """Measures calls of webhooks by their paths."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def register(self, webhook: str) -> None:
        """Create the series of a path, at 0: otherwise Prometheus does not see the first call."""
        for code in ("200", "500"):
            self._metrics.webhook_requests.labels(webhook, code)
        self._metrics.webhook_seconds.labels(webhook)
        self._metrics.webhooks_in_flight.labels(webhook)

    @contextlib.contextmanager
    def measure(self, webhook: str) -> Iterator[Callable[[int], None]]:
        """Return a context manager that measures a call, and counts a failed one as status 500.

        Its value is a function, which counts the response's status.
        """

        def count(code: int) -> None:
            self._metrics.webhook_requests.labels(webhook, str(code)).inc()

        began = monotonic()
        try:
            with self._metrics.webhooks_in_flight.labels(webhook).track_inprogress():
                yield count
        except Exception:
            count(500)
            raise
        finally:
            self._metrics.webhook_seconds.labels(webhook).observe(monotonic() - began)


class CallMetrics:
    """Measures author calls by method, kind and identity.

    If there are too many pairs of kind and identity, the least recently used pairs' metrics are
    dropped.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._running = Counts[tuple[str, str]]()
        self._known: OrderedDict[tuple[str, str], None] = OrderedDict()

    @contextlib.contextmanager
    def measure(self, controller: str, hook: str, identity: str) -> Iterator[None]:
        """Return a context manager that counts a call as in flight and observes its duration."""
        pair = controller, identity
        self._admit(pair)
        self._running[pair] += 1
        in_flight = self._metrics.identity_calls.labels(*pair)
        in_flight.inc()
        began = monotonic()
        try:
            with self._metrics.hooks_in_flight.labels(hook).track_inprogress():
                yield
        finally:
            seconds = monotonic() - began
            self._metrics.hook_seconds.labels(controller, hook).observe(seconds)
            self._metrics.identity_seconds.labels(*pair).observe(seconds)
            in_flight.dec()
            self._running[pair] -= 1
            if not self._running[pair]:
                del self._running[pair]

    def _admit(self, pair: tuple[str, str]) -> None:
        self._known[pair] = None
        self._known.move_to_end(pair)
        if len(self._known) <= MAX_IDENTITIES:
            return
        # A pair with running calls keeps its series: its gauge could not be decremented later.
        eldest = next((each for each in self._known if each not in self._running), pair)
        if eldest != pair:
            del self._known[eldest]
            self._metrics.identity_calls.remove(*eldest)
            self._metrics.identity_seconds.remove(*eldest)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldMetrics(Collector):
    """Derives metrics named as in controller-runtime and client-go from the runtime's own.

    Existing dashboards use these names. The metrics are computed whenever they are rendered, so
    that nothing is counted twice.
    """

    limits: Gauge
    """Gauge for the maximum number of workers, which only controllers have."""
    times: Histogram
    workers: Gauge
    terminal_failures: Counter
    requests: Counter
    api_server: Callable[[], str]
    """Function that returns the host of the API server."""

    def collect(self) -> Iterable[Metric]:
        """Return the derived metrics; those with a controller label exclude webhooks."""
        controllers = {
            sample.labels["controller"]
            for family in self.limits.collect()
            for sample in family.samples
        }
        for family in self.times.collect():
            yield _rename(family, *_TIME, controllers)
        for family in self.workers.collect():
            yield _rename(family, *_WORKERS, controllers)
        for family in self.terminal_failures.collect():
            yield _rename(family, *_TERMINAL)
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


def _rename(
    family: Metric, name: str, description: str, controllers: set[str] | None = None
) -> Metric:
    """Return a metric under another name, and only for the given controllers unless None."""
    renamed = Metric(name, description, family.type)
    for sample in family.samples:
        if controllers is None or sample.labels["controller"] in controllers:
            suffix = sample.name.removeprefix(family.name)
            renamed.samples.append(sample._replace(name=name + suffix))
    return renamed
