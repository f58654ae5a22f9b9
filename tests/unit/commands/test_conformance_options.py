"""capsmith conformance without a cluster: options, objects, reports."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from capsmith.cli import main
from capsmith.clusters.processes.component import read_newest_version
from capsmith.clusters.processes.user_kubeconfig import open_client
from capsmith.commands.conformance import find_secrets
from capsmith.errors import UnreadableInput
from capsmith.judge.running import model, output
from capsmith.judge.running.model import (
    CheckOutcome,
    ConformanceCheck,
    ConformanceReport,
    Selection,
)
from capsmith.judge.running.objects import TEMPLATE_NAME, select_provider_objects
from capsmith.judge.running.session import Session

_GROUP = "infrastructure.cluster.x-k8s.io"
_ROLES = {"BoxCluster": "InfraCluster", "BoxMachineTemplate": "InfraMachineTemplate"}
_METADATA = """\
apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3
kind: Metadata
releaseSeries:
- {major: 0, minor: 9, contract: v1beta1}
- {major: 0, minor: 10, contract: v1beta2}
"""
_COMPONENTS = """\
apiVersion: v1
kind: Namespace
metadata: {name: capb-system, labels: {cluster.x-k8s.io/provider: infrastructure-box}}
"""


@pytest.fixture
def release(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "metadata.yaml").write_text(_METADATA)
    (folder / "infrastructure-components.yaml").write_text(_COMPONENTS)
    return folder


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["conformance", *arguments])


def test_neither_manager_nor_cluster(release: Path) -> None:
    result = _run(str(release))
    assert (result.exit_code, "--manager" in result.output) == (2, True)


def test_both_manager_and_cluster(release: Path, tmp_path: Path) -> None:
    result = _run(str(release), "--manager", "x", "--kubeconfig", str(tmp_path / "none"))
    assert (result.exit_code, "exclude each other" in result.output) == (2, True)


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [("--core", "v1.2", "v1.14"), ("--env", "NAME", "NAME=VALUE"), ("--variable", "=1", "=1")],
)
def test_wrong_options(release: Path, option: str, value: str, message: str) -> None:
    result = _run(str(release), "--manager", "x", option, value)
    assert (result.exit_code, message in result.output) == (2, True)


@pytest.mark.parametrize(
    ("name", "text", "id"),
    [
        ("metadata.yaml", "", "release-metadata"),
        ("metadata.yaml", "releaseSeries: [{major: x}]", "release-metadata"),
        ("infrastructure-components.yaml", "a: [", "manifest-yaml"),
    ],
)
def test_unreadable_releases(release: Path, name: str, text: str, id: str) -> None:
    (release / name).write_text(text)
    result = _run(str(release), "--manager", "x", "--format", "json")
    report = json.loads(result.output)
    assert (result.exit_code, report["findings"][0]["id"]) == (2, id)


def test_variables_of_the_cluster_template_have_values_before_servers_start(release: Path) -> None:
    (release / "cluster-template.yaml").write_text("host: ${BOX_HOST}\nport: ${BOX_PORT}\n")
    options = ("--manager", "x", "--variable", "BOX_PORT=1", "--format", "json")
    result = _run(str(release), *options)
    finding = json.loads(result.output)["findings"][0]
    assert (result.exit_code, finding["id"]) == (2, "conformance-variables")
    assert "BOX_HOST" in finding["message"]
    assert "--variable BOX_HOST=VALUE" in finding["hint"]


def test_no_infrastructure_provider(release: Path) -> None:
    (release / "infrastructure-components.yaml").unlink()
    result = _run(str(release), "--manager", "x", "--format", "json")
    assert json.loads(result.output)["findings"][0]["id"] == "release-component"
    assert result.exit_code == 2


@pytest.mark.parametrize("text", ["", "a: [", "current-context: x\ncontexts: []\n"])
def test_unreadable_kubeconfigs(tmp_path: Path, text: str) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(text)
    with pytest.raises(UnreadableInput) as caught:
        open_client(file, tmp_path)
    assert caught.value.finding.id == "kubeconfig"


def test_the_newest_series(release: Path) -> None:
    assert read_newest_version(release) == "v0.10.0"


def _documents() -> list[dict[str, object]]:
    spec = {"owner": f"{TEMPLATE_NAME}-group"}
    return [
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"{TEMPLATE_NAME}-token"}},
        {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "x"}},
        {
            "apiVersion": f"{_GROUP}/v1",
            "kind": "BoxCluster",
            "metadata": {"name": TEMPLATE_NAME},
            "spec": spec,
        },
        {
            "apiVersion": f"{_GROUP}/v1",
            "kind": "BoxMachineTemplate",
            "metadata": {"name": "workers"},
            "spec": {"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"size": 1}}},
        },
    ]


def test_objects_belong_to_their_cluster() -> None:
    objects = select_provider_objects(_documents(), _ROLES)

    assert objects.cluster("one", "ns")["metadata"] == {"name": "one", "namespace": "ns"}
    assert objects.cluster("one", "ns")["spec"] == {"owner": "one-group"}
    machine = objects.machine("one", "ns", "one-0")
    assert (machine["kind"], machine["spec"]) == ("BoxMachine", {"size": 1})
    assert machine["metadata"]["labels"] == {"a": "b", "cluster.x-k8s.io/cluster-name": "one"}
    assert [each["metadata"]["name"] for each in objects.others("one", "ns")] == ["one-token"]


def test_objects_without_a_role() -> None:
    with pytest.raises(UnreadableInput) as caught:
        select_provider_objects(_documents()[:2], _ROLES)
    assert caught.value.finding.id == "conformance-objects"


def test_selection() -> None:
    check: ConformanceCheck[Session] = ConformanceCheck(
        "restart", "", ("SM-09", "IM-02"), lambda session: None
    )
    rules = {"SM-09": None}
    assert Selection().includes(check, rules)
    for name in ("restart", "SM-09", "SM"):
        assert Selection(select=frozenset({name})).includes(check, rules)
        assert not Selection(ignore=frozenset({name})).includes(check, rules)
    assert not Selection(select=frozenset({"IM"})).includes(check, rules), "of another contract"
    assert not Selection().includes(check, {}), "no rule of this contract"


def _report() -> ConformanceReport:
    failed = model.CheckResult(
        name="restart",
        title="It continues.",
        rules=("SM-09",),
        outcome=CheckOutcome.FAILED,
        message="it made two\x00",
        subject="BoxMachine ns/one-0",
        path="spec.providerID",
        hint="Make one.",
        links=("https://example.com",),
    )
    skipped = model.CheckResult("move", "It moves.", ("MV-02",), CheckOutcome.SKIPPED, "no servers")
    passed = model.CheckResult("cluster-ready", "It is ready.", ("IC-10",), CheckOutcome.PASSED)
    return ConformanceReport("infrastructure-box", "v1beta2", (failed, skipped, passed))


def test_report_as_text() -> None:
    report = _report()
    lines = [line for result in report.results for line in output.render_lines(result)]
    assert lines[0] == "failed: restart (SM-09): It continues."
    assert "    at: BoxMachine ns/one-0 spec.providerID" in lines
    assert "    reason: no servers" in lines
    assert "1 passed, 1 failed, 0 warnings, 1 skipped" in output.render_summary(report)


def test_report_as_data() -> None:
    report = _report()
    data = output.make_data(report)
    assert (report.exit_code, data["exitCode"]) == (1, 1)
    assert data["summary"] == {"passed": 1, "failed": 1, "warning": 0, "skipped": 1}
    assert data["results"][0]["rules"] == ["SM-09"]


def test_report_as_junit() -> None:
    suite = ElementTree.fromstring(output.render_junit(_report()))
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("3", "1", "1")
    failure = suite.find("testcase[@classname='SM-09']/failure")
    assert failure is not None
    assert failure.get("message") == "it made two\\x00"


def test_a_warning_fails_a_strict_run_only() -> None:
    warning = model.CheckResult(
        "cluster-ready", "It is ready.", ("IC-10",), CheckOutcome.WARNING, "it is not"
    )
    for strict in (False, True):
        report = ConformanceReport("infrastructure-box", "v1beta2", (warning,), strict)
        suite = ElementTree.fromstring(output.render_junit(report))
        assert report.exit_code == int(strict)
        assert suite.get("failures") == str(int(strict))
        assert (suite.find("testcase/failure") is not None) == strict
        assert (suite.find("testcase/system-out") is not None) != strict


def test_secrets_are_those_of_variables_with_such_names_and_of_applied_objects() -> None:
    encoded = base64.b64encode(b"first\nsecond").decode()
    objects = [
        {"kind": "Secret", "stringData": {"token": "t0ken"}, "data": {"x": encoded, "y": "%"}},
        {"kind": "ConfigMap", "data": {"x": "public"}},
    ]
    found = find_secrets(["CLOUD_TOKEN=abc=d", "PYTHONPATH=src", "DB_SECRET_NAME=n"], objects)
    assert found == {"abc=d", "t0ken", encoded, "first", "second", "%"}
