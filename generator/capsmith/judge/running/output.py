"""A report as text, JSON or JUnit.  Pure: data in, text out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

from capsmith.formats import clean_xml
from capsmith.judge.running.model import Outcome, Report, Result

_VIOLATED = (Outcome.FAILED, Outcome.WARNING)


def lines(result: Result) -> Iterator[str]:
    """Yield the lines of a result for a terminal."""
    yield f"{result.outcome}: {result.name} ({', '.join(result.rules)}): {result.title}"
    if result.message:
        label = "reason" if result.outcome is Outcome.SKIPPED else "what happened"
        first, *rest = result.message.splitlines()
        yield f"    {label}: {first}"
        yield from (f"        {line}" for line in rest)
    if result.subject:
        yield f"    at: {' '.join(part for part in (result.subject, result.path) if part)}"
    if result.outcome in _VIOLATED:
        if result.hint:
            yield f"    hint: {result.hint}"
        yield from (f"    see: {link}" for link in result.links)


def summary(report: Report) -> str:
    """Return the last line of the text."""
    words = {outcome: "warnings" if outcome is Outcome.WARNING else outcome for outcome in Outcome}
    counts = ", ".join(f"{report.count(outcome)} {word}" for outcome, word in words.items())
    return f"capsmith conformance: {report.provider}, contract {report.contract}: {counts}."


def data(report: Report) -> dict[str, Any]:
    """Return the report as plain data, the shape of ``--format json``."""
    return {
        "exitCode": report.exit_code,
        "provider": report.provider,
        "contract": report.contract,
        "summary": {outcome.value: report.count(outcome) for outcome in Outcome},
        "results": [_result(result) for result in report.results],
    }


def _result(result: Result) -> dict[str, Any]:
    return {
        "check": result.name,
        "title": result.title,
        "rules": list(result.rules),
        "outcome": result.outcome.value,
        "message": result.message,
        "object": result.subject,
        "path": result.path,
        "hint": result.hint,
        "links": list(result.links),
        "seconds": round(result.seconds, 2),
    }


def junit(report: Report) -> str:
    """Return a JUnit report with one case for each check."""
    suite = ElementTree.Element(
        "testsuite",
        name=clean_xml(f"capsmith conformance {report.provider}"),
        tests=str(len(report.results)),
        failures=str(sum(_fails(result, report) for result in report.results)),
        skipped=str(report.count(Outcome.SKIPPED)),
    )
    for result in report.results:
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=",".join(result.rules),
            name=result.name,
            time=f"{result.seconds:.2f}",
        )
        if _fails(result, report):
            failure = ElementTree.SubElement(case, "failure", message=clean_xml(result.message))
            failure.text = clean_xml("\n".join(lines(result)))
        elif result.outcome is Outcome.WARNING:
            ElementTree.SubElement(case, "system-out").text = clean_xml("\n".join(lines(result)))
        elif result.outcome is Outcome.SKIPPED:
            ElementTree.SubElement(case, "skipped", message=clean_xml(result.message))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=False)


def _fails(result: Result, report: Report) -> bool:
    return result.outcome in (_VIOLATED if report.strict else (Outcome.FAILED,))
