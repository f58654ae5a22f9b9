"""Build alert rules and a dashboard for the runtime library's metrics, as plain data.

The names of metrics and labels must match ``capsmith_runtime.kube.metrics``, which a test checks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

from capsmith.output.clusterctl import Hosting, identify_hosting
from capsmith.provider.model import Component, Provider
from capsmith.safetext import SafeText

RUNBOOK: Final = "docs/runbook.md"
SERVICE: Final = "metrics"
"""Suffix of the metrics Service's name. Prometheus uses the Service's name as the job label."""
PREFIX: Final = "ClusterAPIProvider"
"""Prefix of all alert names. Prometheus lists alerts from all systems together."""


class Alert(NamedTuple):
    """A Prometheus alert. ``JOB`` in its expression represents the component's job label."""

    name: str
    severity: Literal["critical", "warning"]
    after: str
    """Duration for which the expression must be true before the alert fires."""
    summary: str
    expression: str
    needs_leader: bool = False
    """Whether the alert is about leader election, which runtime extensions do not use."""
    needs_machines: bool = False
    """Whether the alert is about infrastructure machines."""


class Panel(NamedTuple):
    """A graph on the dashboard, with its unit and a legend for each expression."""

    title: str
    unit: str
    queries: Mapping[str, str]
    needs_workload: bool = False
    """Whether the graph shows requests to workload clusters, which most managers do not send."""


_REMAINING: Final = "min by (server) (certificate_expiration_timestamp_seconds{JOB}) - time()"
ALERTS: Final = (
    Alert(
        "Down",
        "critical",
        "5m",
        "Prometheus reaches no manager of the provider.",
        "absent(up{JOB} == 1)",
    ),
    Alert(
        "WithoutLeader",
        "critical",
        "5m",
        "No manager holds the lease {{ $labels.name }}: nothing is reconciled.",
        # The maximum, because all replicas except the leader report 0.
        "max by (name) (leader_election_master_status{JOB}) == 0",
        needs_leader=True,
    ),
    Alert(
        "Stuck",
        "critical",
        "5m",
        "Reconciles of {{ $labels.controller }} run, and none has ended for 15 minutes.",
        # An idle controller also ends no reconciles, and a long reconcile is no problem while
        # others end.
        "sum by (controller) (min_over_time(reconciles_active{JOB}[15m])) > 0"
        " and sum by (controller) (increase(reconcile_duration_seconds_count{JOB}[15m])) == 0",
    ),
    Alert(
        "QueueLong",
        "warning",
        "15m",
        "More than 100 objects of {{ $labels.name }} wait all the time.",
        "max by (name) (min_over_time(workqueue_depth{JOB}[15m])) > 100",
    ),
    Alert(
        "ReconcileErrors",
        "warning",
        "15m",
        "More than a quarter of the reconciles of {{ $labels.controller }} fail.",
        # A conflict is retried with the newer object.
        'sum by (controller) (rate(reconcile_errors_total{JOB, error!="Conflict"}[15m]))'
        " / sum by (controller) (rate(reconcile_duration_seconds_count{JOB}[15m])) > 0.25",
    ),
    Alert(
        "TerminalFailures",
        "warning",
        "1m",
        "Objects of {{ $labels.controller }} have failed, and no retry resolves it.",
        "sum by (controller) (increase(terminal_failures_total{JOB}[1h])) > 0",
    ),
    Alert(
        "TerminationsHeld",
        "warning",
        "1m",
        "The infrastructure has lost too many machines at once: they are not given up.",
        # The maximum, because only the leader looks at machines.
        "max(terminations_held{JOB}) > 0",
        needs_machines=True,
    ),
    Alert(
        "CallTimeouts",
        "warning",
        "5m",
        "Calls of {{ $labels.hook }} exceed their time limit.",
        "sum by (hook) (increase(hook_timeouts_total{JOB}[30m])) > 0",
    ),
    Alert(
        "CallsHang",
        "warning",
        "15m",
        "Calls run on after their time limit, each in a thread.",
        "max(hooks_abandoned{JOB}) > 0",
    ),
    Alert(
        "Throttled",
        "warning",
        "30m",
        "More than one reconcile of {{ $labels.controller }} a second waits for a rate limit.",
        "sum by (controller) (rate(reconciles_deferred_total{JOB}[15m])) > 1",
    ),
    Alert(
        "RateLimited",
        "warning",
        "10m",
        "The API server refuses requests: there are too many (429).",
        'sum(rate(kube_requests_total{JOB, code="429"}[10m])) > 0.1',
    ),
    Alert(
        "RequestsFail",
        "warning",
        "10m",
        "More than a tenth of the requests to the API server fail.",
        'sum(rate(kube_requests_total{JOB, code=~"5..|none"}[10m]))'
        " / sum(rate(kube_requests_total{JOB}[10m])) > 0.1",
    ),
    Alert(
        "WatchesBreak",
        "warning",
        "15m",
        "Watches of {{ $labels.kind }} fail again and again.",
        'sum by (kind) (increase(informer_restarts_total{JOB, cause!~"ended|gone"}[15m])) > 10',
    ),
    Alert(
        "CertificateExpires",
        "warning",
        "15m",
        "The certificate of the {{ $labels.server }} server expires within a week.",
        f"{_REMAINING} < 7 * 24 * 3600",
    ),
)


def _summed(function: str, metric: str, *labels: str) -> Mapping[str, str]:
    """Return a query of ``rate`` or ``increase`` summed by labels, mapped to its legend."""
    legend = " ".join(f"{{{{{label}}}}}" for label in labels)
    return {legend: f"sum by ({', '.join(labels)}) ({function}({metric}{{JOB}}[RANGE]))"}


_SLOWEST: Final = _summed("rate", "reconcile_duration_seconds_bucket", "le", "controller")
_PANELS: Final = (
    Panel("Leaders and managers", "short", {"leads": "sum(leader{JOB})", "runs": "sum(up{JOB})"}),
    Panel("Reconciles", "ops", _summed("rate", "reconcile_duration_seconds_count", "controller")),
    Panel(
        "Failed reconciles", "ops", _summed("rate", "reconcile_errors_total", "controller", "error")
    ),
    Panel(
        "Duration of reconciles, 99th percentile",
        "s",
        {"{{controller}}": f"histogram_quantile(0.99, {next(iter(_SLOWEST.values()))})"},
    ),
    Panel(
        "Objects that wait for a worker",
        "short",
        {"{{name}}": "sum by (name) (workqueue_depth{JOB})"},
    ),
    Panel(
        "Running reconciles",
        "short",
        {"{{controller}}": "sum by (controller) (reconciles_active{JOB})"},
    ),
    Panel(
        "Terminal failures", "short", _summed("increase", "terminal_failures_total", "controller")
    ),
    Panel(
        "Reconciles that wait for a rate limit",
        "ops",
        _summed("rate", "reconciles_deferred_total", "controller"),
    ),
    Panel(
        "Calls of your code beyond their time limit",
        "short",
        {
            **_summed("increase", "hook_timeouts_total", "hook"),
            "still running": "sum(hooks_abandoned{JOB})",
        },
    ),
    Panel(
        "Requests to the API server",
        "reqps",
        _summed("rate", "kube_requests_total", "verb", "code"),
    ),
    Panel(
        "Requests to workload clusters",
        "reqps",
        _summed("rate", "workload_kube_requests_total", "verb", "code"),
        needs_workload=True,
    ),
    Panel(
        "Watches that ended",
        "short",
        _summed("increase", "informer_restarts_total", "kind", "cause"),
    ),
    Panel("Objects in caches", "short", {"{{kind}}": "max by (kind) (informer_objects{JOB})"}),
    Panel("Time until certificates expire", "s", {"{{server}}": _REMAINING}),
    Panel("Memory", "bytes", {"{{pod}}": "process_resident_memory_bytes{JOB}"}),
    Panel(
        "Processor time", "percentunit", {"{{pod}}": "rate(process_cpu_seconds_total{JOB}[RANGE])"}
    ),
)
_COLUMNS: Final = 3
_WIDTH: Final = 8
"""Width and height of a panel; Grafana's grid has 24 columns."""
_SOURCE: Final = {"type": "prometheus", "uid": "$datasource"}


def build_alert_rules(component: Component, provider: Provider) -> list[Mapping[str, Any]]:
    """Return the alerts for a component's manager, as in a Prometheus rules file."""
    has_leader = component.types != ("runtime-extension",)
    has_machines = "infrastructure" in component.types
    return [
        {
            "alert": f"{PREFIX}{alert.name}",
            "expr": _selecting(alert.expression, component),
            "for": alert.after,
            "labels": {"severity": alert.severity, "provider": str(component.label)},
            "annotations": {
                "summary": alert.summary,
                "runbook_url": f"{_page(provider)}#{PREFIX.lower()}{alert.name.lower()}",
            },
        }
        for alert in ALERTS
        if (has_leader or not alert.needs_leader) and (has_machines or not alert.needs_machines)
    ]


def build_dashboard(component: Component) -> Mapping[str, Any]:
    """Return the dashboard for a component's manager, in Grafana's JSON model."""
    has_workload = component.uses_workload_clusters
    panels = [each for each in _PANELS if has_workload or not each.needs_workload]
    source = {"name": "datasource", "type": "datasource", "query": "prometheus"}
    return {
        "title": f"Cluster API provider {component.label}",
        "tags": ["cluster-api"],
        "schemaVersion": 39,
        "refresh": "1m",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [source]},
        "panels": [_panel(n, panel, component) for n, panel in enumerate(panels)],
    }


def format_dashboard(component: Component, indent: int) -> SafeText:
    """Return the dashboard as JSON with one line per panel, so that diffs are readable.

    All lines after the first are indented by ``indent`` spaces.
    """
    model = dict(build_dashboard(component))
    panels = model.pop("panels")
    head = ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in model.items())
    rows = ",\n".join(f"  {json.dumps(panel)}" for panel in panels)
    text = f'{{\n{head},\n "panels": [\n{rows}\n ]\n}}'
    return SafeText(text.replace("\n", "\n" + " " * indent))


def _panel(number: int, panel: Panel, component: Component) -> Mapping[str, Any]:
    row, column = divmod(number, _COLUMNS)
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "gridPos": {"x": column * _WIDTH, "y": row * _WIDTH, "w": _WIDTH, "h": _WIDTH},
        "datasource": _SOURCE,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}},
        "targets": [
            {
                "refId": "ABC"[index],
                # Without braces, because clusterctl would treat ${...} as its own variable.
                "expr": _selecting(query, component).replace("RANGE", "$__rate_interval"),
                "legendFormat": legend,
            }
            for index, (legend, query) in enumerate(panel.queries.items())
        ],
    }


def _selecting(expression: str, component: Component) -> str:
    """Return the expression limited to one job, as other providers use the same metrics."""
    return expression.replace("JOB", f'job="{component.namespace}-{SERVICE}"')


def _page(provider: Provider) -> str:
    """Return the URL of the runbook on the default branch."""
    path = "-/blob/HEAD" if identify_hosting(provider.repository) is Hosting.GITLAB else "blob/HEAD"
    return f"{provider.repository}/{path}/{RUNBOOK}"
