"""Alerts of the example acme fire when they should, and only then: promtool evaluates them.

It is built once, as the tools of the end-to-end tests are.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from capsmith.output.monitoring import ALERTS, PREFIX
from tests.e2e.tools.required import required_promtool

HERE = Path(__file__).parent
CASES: dict[str, Any] = yaml.safe_load((HERE / "alerts.yaml").read_text(encoding="utf-8"))
FILE = HERE / "acme/expected/config/components/monitoring/alerts.yaml"
SPEC = yaml.safe_load(FILE.read_text(encoding="utf-8"))["spec"]
RULES = {rule["alert"]: rule for group in SPEC["groups"] for rule in group["rules"]}
JOB = 'job="acme-system-metrics"'


def test_each_alert_has_cases() -> None:
    assert list(CASES) == [alert.name for alert in ALERTS]
    assert all(case["fires"] and case["silent"] for case in CASES.values())


@pytest.fixture(scope="module")
def promtool() -> Path:
    return required_promtool("the tests of alerts")


@pytest.mark.parametrize("alert", CASES)
def test_an_alert_fires_when_it_should(promtool: Path, tmp_path: Path, alert: str) -> None:
    fires, silent = CASES[alert]["fires"], CASES[alert]["silent"]
    tests = [_test(alert, case["series"], [_fired(alert, case)]) for case in fires]
    tests += [_test(alert, case["series"], []) for case in silent]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(SPEC))
    (tmp_path / "tests.yaml").write_text(
        yaml.safe_dump({"rule_files": ["rules.yaml"], "tests": tests})
    )
    command = [str(promtool), "test", "rules", str(tmp_path / "tests.yaml")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def _test(alert: str, series: dict[str, Any], expected: list[Any]) -> dict[str, Any]:
    samples = [
        {"series": _selected(selector), "values": values} for selector, values in series.items()
    ]
    last = {"eval_time": "60m", "alertname": PREFIX + alert, "exp_alerts": expected}
    return {"interval": "1m", "input_series": samples, "alert_rule_test": [last]}


def _fired(alert: str, case: dict[str, Any]) -> dict[str, Any]:
    """Return the alert with its labels and annotations: promtool compares all of them."""
    rule, labels = RULES[PREFIX + alert], case.get("labels", {})
    annotations = {
        key: re.sub(r"{{ \$labels\.(\w+) }}", lambda found: str(labels[found[1]]), text)
        for key, text in rule["annotations"].items()
    }
    return {"exp_labels": {**rule["labels"], **labels}, "exp_annotations": annotations}


def _selected(selector: str) -> str:
    """Return the selector with the label of the job."""
    metric, _, labels = selector.rstrip("}").partition("{")
    return f"{metric}{{{', '.join(filter(None, [labels, JOB]))}}}"
