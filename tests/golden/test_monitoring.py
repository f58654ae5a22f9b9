"""Alerts, dashboards and ServiceMonitors of all cases: they fit the manager and the runbook."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import promql_parser as promql
import pytest
import yaml
from prometheus_client import Counter
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.parser import text_string_to_metric_families

from capsmith.output.monitoring import ALERTS
from capsmith_runtime.kube.metrics import Metrics
from tests.golden.cases import Case, cases

HERE = Path(__file__).parent
FOLDERS = {
    folder: case
    for case in cases()
    for folder in sorted(case.expected.glob("**/components/monitoring"))
}


def component(folder: Path) -> str:
    """Return the name of the case, and the folder of its component if that is not the root."""
    case = FOLDERS[folder]
    return f"{case.name}/{folder.parents[2].relative_to(case.expected)}".removesuffix("/.")


TARGET_LABELS = {"job", "pod", "le"}
"""What Prometheus and its histograms add."""

folders = pytest.mark.parametrize("folder", FOLDERS, ids=component)


def objects(file: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(file.read_text(encoding="utf-8")))


def one(folder: Path, file: str, kind: str) -> dict[str, Any]:
    (found,) = (each for each in objects(folder / file) if each["kind"] == kind)
    return found


def rules(folder: Path) -> list[dict[str, Any]]:
    (group,) = one(folder, "alerts.yaml", "PrometheusRule")["spec"]["groups"]
    return list(group["rules"])


def queries(folder: Path) -> list[tuple[str, str]]:
    """Return the expressions of the dashboard with their legends."""
    (text,) = one(folder, "dashboard.yaml", "ConfigMap")["data"].values()
    return [
        (target["expr"].replace("$__rate_interval", "5m"), target["legendFormat"])
        for panel in json.loads(text)["panels"]
        for target in panel["targets"]
    ]


@cache
def served() -> Mapping[str, frozenset[str]]:
    """Return the names of all samples that a manager can serve, with their labels."""
    metrics = Metrics()
    labelled = [each for each in vars(metrics).values() if getattr(each, "_labelnames", ())]
    for metric in labelled:
        metric.labels(*metric._labelnames)
    families = text_string_to_metric_families(metrics.render().decode())
    samples = [sample for family in families for sample in family.samples]
    found = {sample.name: frozenset(sample.labels) for sample in samples}
    return {**found, "up": frozenset()}


def documented() -> Mapping[str, set[str]]:
    """Return the metrics of the runtime by the names that pages call them, with their labels."""
    found = [each for each in vars(Metrics()).values() if isinstance(each, MetricWrapperBase)]
    return {
        each._name + ("_total" if isinstance(each, Counter) else ""): set(each._labelnames)
        for each in found
    }


def nodes(expression: str) -> list[Any]:
    found: list[Any] = []
    promql.walk(promql.parse(expression), found.append)
    return found


def selected(expression: str) -> Iterator[Any]:
    return (each for each in nodes(expression) if isinstance(each, promql.VectorSelector))


def grouping(expression: str) -> set[str]:
    """Return the labels by which an expression aggregates."""
    aggregates = (each for each in nodes(expression) if isinstance(each, promql.AggregateExpr))
    return {label for each in aggregates if each.modifier for label in each.modifier.labels}


def test_there_are_cases() -> None:
    assert FOLDERS


@folders
def test_expressions_select_metrics_and_labels_that_managers_serve(folder: Path) -> None:
    job = one(folder, "metrics.yaml", "Service")["metadata"]["name"]
    for expression in [rule["expr"] for rule in rules(folder)] + [q for q, _ in queries(folder)]:
        known: set[str] = set(TARGET_LABELS)
        for selector in selected(expression):
            matchers = {each.name: each.value for each in selector.matchers.matchers}
            assert selector.name in served(), expression
            assert matchers.pop("job") == job
            assert matchers.keys() <= served()[selector.name], expression
            known |= served()[selector.name]
        assert grouping(expression) <= known, expression


@folders
def test_texts_name_labels_that_the_result_has(folder: Path) -> None:
    for rule in rules(folder):
        named = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
        assert named <= grouping(rule["expr"]), rule["alert"]
    for expression, legend in queries(folder):
        named = set(re.findall(r"{{(\w+)}}", legend))
        assert named <= grouping(expression) | {"pod"}, expression


def test_only_managers_that_use_workload_clusters_have_their_graph() -> None:
    found = {
        component(folder)
        for folder in FOLDERS
        if any("workload_kube_requests_total" in query for query, _ in queries(folder))
    }
    assert found == {
        "complete/control-plane",
        "control-plane/control-plane",
        "everything",  # with the feature workloadClient
        "extension/addon",
        "managed",  # with control planes in the same manager
        "two-contracts/addon",
        "two-contracts/control-plane",
    }


@folders
def test_rules_are_complete(folder: Path) -> None:
    names = [rule["alert"] for rule in rules(folder)]
    assert len(set(names)) == len(names)
    for rule in rules(folder):
        assert rule.keys() == {"alert", "expr", "for", "labels", "annotations"}
        promql.parse_duration(rule["for"])
        assert rule["labels"]["severity"] in ("critical", "warning")


@folders
def test_each_alert_has_its_section_in_the_runbook(folder: Path) -> None:
    case = FOLDERS[folder]
    (spec,) = objects(case.spec)
    runbook = (case.expected / "docs" / "runbook.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## (.+)$", runbook, re.MULTILINE)
    for rule in rules(folder):
        address, _, anchor = rule["annotations"]["runbook_url"].partition("#")
        assert address.startswith(spec["repository"])
        assert address.endswith("/docs/runbook.md")
        assert rule["alert"] in sections
        assert anchor == rule["alert"].lower()


@pytest.mark.parametrize("case", dict.fromkeys(FOLDERS.values()), ids=lambda case: case.name)
def test_the_runbook_has_no_other_sections(case: Case) -> None:
    runbook = (case.expected / "docs" / "runbook.md").read_text(encoding="utf-8")
    own = (folder for folder, owner in FOLDERS.items() if owner == case)
    alerts = {rule["alert"] for folder in own for rule in rules(folder)}

    assert set(re.findall(r"^## (.+)$", runbook, re.MULTILINE)) == alerts
    assert set(re.findall(r"\(#(\w+)\)", runbook)) <= {alert.lower() for alert in alerts}


@folders
def test_the_runbook_reads_the_logs_of_all_replicas(folder: Path) -> None:
    """Of a Deployment kubectl takes one Pod, which need not be the one that leads."""
    runbook = (FOLDERS[folder].expected / "docs" / "runbook.md").read_text(encoding="utf-8")
    (deployment,) = objects(folder.parents[1] / "manager" / "manager.yaml")
    labels = deployment["spec"]["template"]["metadata"]["labels"]

    commands = re.findall(r"^kubectl .* logs .*$", runbook, re.MULTILINE)
    assert len(commands) >= 4
    for command in commands:
        key, value = re.findall(r" --selector ([^ =]+)=(\S+)", command)[0]
        assert labels[key] == value
        # With a selector, kubectl shows ten lines of each Pod by default.
        assert " --tail -1" in command
        assert "deployment/" not in command


@folders
def test_the_monitor_reaches_the_manager(folder: Path) -> None:
    config = folder.parents[1]
    (deployment,) = objects(config / "manager" / "manager.yaml")
    pod = deployment["spec"]["template"]["spec"]
    manager = next(each for each in pod["containers"] if each["name"] == "manager")
    service = one(folder, "metrics.yaml", "Service")
    certificate = one(folder, "metrics.yaml", "Certificate")["spec"]
    # The certificate is its own issuer, which strict clients refuse without a name.
    assert 0 < len(certificate["commonName"]) <= 64
    monitor = one(folder, "metrics.yaml", "ServiceMonitor")["spec"]
    (endpoint,), (port,) = monitor["endpoints"], service["spec"]["ports"]
    token = one(folder, "metrics.yaml", "Secret")["metadata"]
    account = one(folder, "metrics.yaml", "ServiceAccount")["metadata"]["name"]

    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert endpoint["port"] == port["name"]
    assert port["targetPort"] in [each["name"] for each in manager["ports"]]
    assert certificate["secretName"] in [
        volume.get("secret", {}).get("secretName") for volume in pod["volumes"]
    ]
    assert endpoint["tlsConfig"]["ca"]["secret"]["name"] == certificate["secretName"]
    assert endpoint["tlsConfig"]["serverName"] in certificate["dnsNames"]
    assert endpoint["authorization"]["credentials"]["name"] == token["name"]
    assert token["annotations"]["kubernetes.io/service-account.name"] == account


@pytest.mark.parametrize("case", dict.fromkeys(FOLDERS.values()), ids=lambda case: case.name)
def test_the_reference_describes_all_metrics(case: Case) -> None:
    reference = (case.expected / "docs" / "reference.md").read_text(encoding="utf-8")
    described = dict(re.findall(r"^\| `([a-z_]+)` \| ([a-z, ]*)\|", reference, re.MULTILINE))

    # Only managers with these flags have such calls.
    left_out = {
        name
        for prefix, flag in (
            ("stored_objects_rewritten_", "--skip-crd-migration"),
            ("controller_runtime_webhook_", "--webhook-port"),
        )
        for name in documented()
        if name.startswith(prefix) and flag not in reference
    }
    for name, labels in documented().items():
        if name not in left_out:
            assert {each for each in described[name].strip().split(", ") if each} == labels, name


def test_the_page_lists_all_alerts() -> None:
    page = (HERE.parents[1] / "docs" / "how-to" / "operate.md").read_text(encoding="utf-8")

    rows = re.findall(r"^\| `(\w+)` \| (critical|warning) \|", page, re.MULTILINE)
    assert rows == [(alert.name, alert.severity) for alert in ALERTS]
