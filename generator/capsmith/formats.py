"""Findings in the formats that code hosts and CI systems read.  Pure: data in, text out."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

from capsmith.findings import Finding, Severity

_SARIF_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


_NO_XML = re.compile("[^\t\n -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def format_sarif(findings: Sequence[Finding], version: str) -> str:
    """Return a SARIF 2.1.0 log; ``version`` is capsmith's.

    Source: OASIS, Static Analysis Results Interchange Format 2.1.0.
    """
    rules = {finding.id: finding for finding in reversed(findings)}
    driver = {
        "name": "capsmith",
        "semanticVersion": version,
        "rules": [_sarif_rule(rules[id]) for id in sorted(rules)],
    }
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": [_sarif_result(f) for f in findings]}],
    }
    return json.dumps(log, indent=2, ensure_ascii=False)


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
        "message": {"text": text},
        "locations": [{"physicalLocation": place}] if where.file else [],
    }


def _uri(path: str) -> str:
    """Return a path as a URI reference, in which no colon begins a scheme."""
    return ("file://" if path.startswith("/") else "") + quote(path, errors="replace")


def format_junit(findings: Sequence[Finding], name: str) -> str:
    """Return a JUnit report: one case for each finding, or one that passed; errors fail."""
    failures = sum(finding.severity is Severity.ERROR for finding in findings)
    suite = ElementTree.Element(
        "testsuite", name=name, tests=str(max(len(findings), 1)), failures=str(failures)
    )
    if not findings:
        ElementTree.SubElement(suite, "testcase", classname=name, name="contract")
    for finding in findings:
        case = ElementTree.SubElement(
            suite, "testcase", classname=finding.id, name=clean_xml(str(finding.location))
        )
        body = clean_xml("\n".join(part for part in (finding.message, finding.hint) if part))
        if finding.severity is Severity.ERROR:
            failure = ElementTree.SubElement(case, "failure", message=clean_xml(finding.message))
            failure.text = body
        else:
            ElementTree.SubElement(case, "system-out").text = body
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=False)


def clean_xml(text: str) -> str:
    """Return ``text`` without the characters that XML 1.0 cannot hold."""
    return "".join("?" if _NO_XML.match(character) else character for character in text)
