"""The reports in every format, byte by byte."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from tests.verify.places import FORMATS, RELEASE, ROOT, report, run


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("format", FORMATS)
def test_reports(format: str) -> None:
    assert report(format) == (ROOT / "expected" / FORMATS[format]).read_text(encoding="utf-8")


def test_only_what_breaks_fails_in_junit() -> None:
    suite = ElementTree.fromstring(report("junit"))
    breaking = [v for v in json.loads(report("json"))["violations"] if v["class"] == "breaks"]
    assert int(suite.attrib["failures"]) == len(suite.findall("testcase/failure")) == len(breaking)


def test_sarif_has_what_a_finding_has_no_place_for() -> None:
    (results,) = [run["results"] for run in json.loads(report("sarif"))["runs"]]
    found = next(each for each in results if each["ruleId"] == "IM-03")
    assert found["level"] == "error"
    assert found["properties"]["class"] == "breaks"
    assert found["properties"]["core"] == ["v1.11", "v1.12", "v1.13", "v1.14", "v1.15"]
    region = found["locations"][0]["physicalLocation"]["region"]
    text = (ROOT / RELEASE / "infrastructure-components.yaml").read_text().split("\n")
    assert text[region["startLine"] - 1][region["startColumn"] - 1 :].startswith("provisioned:")


def test_advice_is_hidden_and_counted() -> None:
    hidden = json.loads(run(RELEASE, "--format", "json").output)
    shown = json.loads(run(RELEASE, "--advice", "--format", "json").output)
    assert {v["class"] for v in hidden["violations"]} == {"breaks", "breaks-when"}
    assert hidden["summary"]["hiddenAdvice"] == shown["summary"]["advice"] > 0


def test_nothing_is_reported_without_violations() -> None:
    result = run(RELEASE, "--select", "MP")
    assert result.exit_code == 0
    assert result.output == (
        "capsmith verify: 0 break, 0 break under a condition; 3 files, core v1.10 to v1.15"
        " (v1.11, v1.12, v1.15 as read from source).\n"
    )


def test_a_page_names_both_releases_of_an_upgrade() -> None:
    result = run(RELEASE, "--upgrade", str(ROOT / RELEASE), "--format", "markdown")
    assert f"- Installed release: {RELEASE}\n- Replaced by: {RELEASE}\n" in result.output
