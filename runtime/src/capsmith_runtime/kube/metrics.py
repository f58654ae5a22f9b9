"""Prometheus metrics, in a registry of their own so that nothing global is shared."""

from __future__ import annotations

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)

_LATENCY = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Metrics:
    """The metrics of one process."""

    def __init__(self) -> None:
        registry = CollectorRegistry()
        self._registry = registry
        ProcessCollector(registry=registry)
        self.requests = Counter(
            "kube_requests", "Requests to the API server.", ["verb", "code"], registry=registry
        )
        self.workload_requests = Counter(
            "workload_kube_requests",
            "Requests to API servers of workload clusters.",
            ["verb", "code"],
            registry=registry,
        )
        self.queue_depth = Gauge(
            "workqueue_depth", "Keys that wait for a worker.", ["name"], registry=registry
        )
        self.reconcile_seconds = Histogram(
            "reconcile_duration_seconds",
            "How long reconciles took.",
            ["controller"],
            buckets=_LATENCY,
            registry=registry,
        )
        self.reconcile_errors = Counter(
            "reconcile_errors", "Failed reconciles.", ["controller", "error"], registry=registry
        )
        self.reconciles_active = Gauge(
            "reconciles_active", "Reconciles that run now.", ["controller"], registry=registry
        )
        self.informer_objects = Gauge(
            "informer_objects", "Objects in the cache.", ["kind"], registry=registry
        )
        self.informer_restarts = Counter(
            "informer_restarts", "Watches that ended.", ["kind", "cause"], registry=registry
        )
        self.hook_timeouts = Counter(
            "hook_timeouts", "Author hooks that ran out of time.", ["hook"], registry=registry
        )
        self.hooks_abandoned = Gauge(
            "hooks_abandoned", "Hooks past their time-out that still run.", registry=registry
        )
        self.events_dropped = Counter(
            "events_dropped", "Kubernetes events that were not sent.", ["cause"], registry=registry
        )
        self.objects_rewritten = Counter(
            "stored_objects_rewritten",
            "Objects rewritten because they may be stored in another version.",
            ["kind"],
            registry=registry,
        )
        self.leader = Gauge("leader", "1 while this process holds the lease.", registry=registry)

    def render(self) -> bytes:
        """Return the metrics in the text exposition format."""
        return generate_latest(self._registry)
