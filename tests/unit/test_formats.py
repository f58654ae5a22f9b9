"""Output for code hosts and CI systems contains the same information as the findings."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capsmith.findings import Finding, Location, Severity
from capsmith.formats import format_json, format_junit, format_sarif
from capsmith.printable import find_unprintable

ERROR = Finding("IC-05", "wrong", Location("a.yaml", 3, 5), hint="right it", link="https://x.test/")
NOTE = Finding("spec-hint", "could be better", Location("a.yaml"), Severity.INFO)


def test_sarif_names_rule_place_and_help() -> None:
    (run,) = json.loads(format_sarif((ERROR, NOTE), "1.2.3"))["runs"]
    assert run["tool"]["driver"]["semanticVersion"] == "1.2.3"
    assert run["tool"]["driver"]["rules"] == [
        {"id": "IC-05", "helpUri": "https://x.test/"},
        {"id": "spec-hint"},
    ]
    error, note = run["results"]
    assert (error["ruleId"], error["level"]) == ("IC-05", "error")
    assert error["message"]["text"] == "wrong. right it"
    place = error["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "a.yaml"
    assert place["region"] == {"startLine": 3, "startColumn": 5}
    assert note["level"] == "note"
    assert "region" not in note["locations"][0]["physicalLocation"]


@pytest.mark.parametrize(
    ("file", "uri"),
    [
        ("a b/é.yaml", "a%20b/%C3%A9.yaml"),
        ("/r/a#b?.yaml", "file:///r/a%23b%3F.yaml"),
        ("c:x.yaml", "c%3Ax.yaml"),
    ],
)
def test_sarif_names_files_by_uri(file: str, uri: str) -> None:
    (run,) = json.loads(format_sarif((Finding("x", "wrong", Location(file)),), "1"))["runs"]
    (location,) = run["results"][0]["locations"]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == uri


def test_sarif_of_a_finding_on_no_file_has_no_place() -> None:
    (run,) = json.loads(format_sarif((Finding("x", "wrong", Location("")),), "1"))["runs"]
    assert run["results"][0]["locations"] == []


def test_junit_holds_characters_that_xml_does_not() -> None:
    text = "a\ufffe\uffff\ud800\x0b\r\U0001fffe"
    suite = ElementTree.fromstring(format_junit((Finding("x", text, Location("f")),), "c"))
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert failure.get("message") == "a\\ufffe\\uffff\\ud800\\x0b\\r\U0001fffe"


HOSTILE = "a\u202eb\u2066c\u200b\ufeff\x1b[2J\x9b\u2028\U000e0041é\ud800"
"""Characters that reorder, hide or delete the text around them, and one that does not."""


@pytest.mark.parametrize("format", ["json", "sarif", "junit"])
def test_no_document_has_a_character_that_is_not_printable(format: str) -> None:
    finding = Finding("x", f"{HOSTILE}\n{HOSTILE}", Location(HOSTILE, 1, 1), hint=HOSTILE)
    match format:
        case "json":
            text = format_json({HOSTILE: [finding._asdict() | {"location": HOSTILE}]})
            assert json.loads(text)[HOSTILE][0]["message"] == finding.message
        case "sarif":
            text = format_sarif((finding,), "1")
        case _:
            text = format_junit((finding,), HOSTILE)
    assert find_unprintable(text.replace("\n", "")) == ""
    assert "é" in text


def test_junit_and_sarif_show_what_no_viewer_does() -> None:
    finding = Finding("x", "a\u202eb\n\tc\x1b", Location("f"))
    shown = "a\\u202eb\n\tc\\x1b"
    (run,) = json.loads(format_sarif((finding,), "1"))["runs"]
    assert run["results"][0]["message"]["text"] == shown
    failure = ElementTree.fromstring(format_junit((finding,), "c")).find("testcase/failure")
    assert failure is not None
    assert (failure.get("message"), failure.text) == (shown, shown)


def test_junit_fails_for_errors_only() -> None:
    suite = ElementTree.fromstring(format_junit((ERROR, NOTE), "capsmith"))
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    failed, passed = suite.findall("testcase")
    assert failed.get("name") == "a.yaml:3:5"
    failure = failed.find("failure")
    assert failure is not None
    assert failure.text == "wrong\nright it"
    assert passed.find("failure") is None


def test_junit_without_findings_has_a_case_that_passed() -> None:
    suite = ElementTree.fromstring(format_junit((), "capsmith"))
    assert (suite.get("tests"), suite.get("failures")) == ("1", "0")
    assert len(suite.findall("testcase")) == 1


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_gives_documents_that_parse(text: str) -> None:
    finding = Finding("x", text, Location(text or "f"), hint=text)
    assert json.loads(format_sarif((finding,), "1"))["runs"][0]["results"]
    assert len(ElementTree.fromstring(format_junit((finding,), "capsmith"))) == 1
