"""Format findings for code hosts and CI systems. Pure functions that return strings or data.

No document contains an unprintable character, which could reorder or hide the text around it.  JSON
keeps the value: it escapes the character.  Texts in SARIF and JUnit are there to be read, so these
show the escape sequence, as a terminal does.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple
from urllib.parse import quote
from xml.etree import ElementTree

from capsmith.findings import Finding, Severity
from capsmith.printable import escape_json, make_lines_printable

_SARIF_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def format_sarif(findings: Sequence[Finding], version: str) -> str:
    """Return findings as a SARIF 2.1.0 log in JSON. ``version`` is capsmith's version."""
    return format_json(make_sarif_log(findings, version))


def make_sarif_log(findings: Sequence[Finding], version: str) -> dict[str, Any]:
    """Return a SARIF 2.1.0 log with one run as plain data, with one result per finding.

    Source: OASIS, Static Analysis Results Interchange Format 2.1.0.
    """
    rules = {finding.id: finding for finding in reversed(findings)}
    driver = {
        "name": "capsmith",
        "semanticVersion": version,
        "rules": [_sarif_rule(rules[id]) for id in sorted(rules)],
    }
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": [_sarif_result(f) for f in findings]}],
    }


def format_json(data: Any) -> str:
    """Return data as indented JSON, as in all reports. Unprintable characters are escaped."""
    return escape_json(json.dumps(data, indent=2, ensure_ascii=False))


def _sarif_rule(finding: Finding) -> dict[str, Any]:
    rule: dict[str, Any] = {"id": finding.id}
    if finding.link:
        rule["helpUri"] = finding.link
    return rule


def _sarif_result(finding: Finding) -> dict[str, Any]:
    where = finding.location
    place: dict[str, Any] = {"artifactLocation": {"uri": _uri(where.file)}}
    if where.line:
        place["region"] = {"startLine": where.line, "startColumn": max(where.column, 1)}
    text = f"{finding.message}. {finding.hint}" if finding.hint else finding.message
    return {
        "ruleId": finding.id,
        "level": _SARIF_LEVELS[finding.severity],
        "message": {"text": make_lines_printable(text)},
        "locations": [{"physicalLocation": place}] if where.file else [],
    }


def _uri(path: str) -> str:
    """Return a path as a URI reference, escaped so that a colon does not start a scheme."""
    return ("file://" if path.startswith("/") else "") + quote(path, errors="replace")


class JUnitCase(NamedTuple):
    """A test case in a JUnit report."""

    classname: str
    name: str
    outcome: Literal["passed", "noted", "failed", "skipped"] = "passed"
    """How the case ended; ``noted`` means that it passed with a message."""
    message: str = ""
    """One-line reason why the case failed or was skipped."""
    text: str = ""
    """Full description of a failed or noted case."""
    seconds: float | None = None


def format_junit(findings: Sequence[Finding], name: str) -> str:
    """Return a JUnit report in XML with one case per finding. Only errors count as failures.

    If there are no findings, the report has a single passed case.
    """
    cases = [
        JUnitCase(
            finding.id,
            str(finding.location),
            "failed" if finding.severity is Severity.ERROR else "noted",
            finding.message,
            "\n".join(part for part in (finding.message, finding.hint) if part),
        )
        for finding in findings
    ]
    return format_junit_cases(name, cases or [JUnitCase(name, "contract")])


def format_junit_cases(name: str, cases: Sequence[JUnitCase], *, can_skip: bool = False) -> str:
    """Return a JUnit report in XML with the given cases.

    If ``can_skip`` is true, the report also states the number of skipped cases.
    """
    count = Counter(case.outcome for case in cases)
    totals = {"tests": len(cases), "failures": count["failed"]}
    if can_skip:
        totals["skipped"] = count["skipped"]
    numbers = {key: str(value) for key, value in totals.items()}
    suite = ElementTree.Element("testsuite", {"name": make_lines_printable(name), **numbers})
    for case in cases:
        _add_case(suite, case)
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=False)


def _add_case(suite: ElementTree.Element, case: JUnitCase) -> None:
    names = {"classname": case.classname, "name": make_lines_printable(case.name)}
    if case.seconds is not None:
        names["time"] = f"{case.seconds:.2f}"
    element = ElementTree.SubElement(suite, "testcase", names)
    message = make_lines_printable(case.message)
    if case.outcome == "failed":
        ElementTree.SubElement(element, "failure", message=message).text = make_lines_printable(
            case.text
        )
    elif case.outcome == "noted":
        ElementTree.SubElement(element, "system-out").text = make_lines_printable(case.text)
    elif case.outcome == "skipped":
        ElementTree.SubElement(element, "skipped", message=message)
