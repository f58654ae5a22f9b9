"""Format a conformance report as text, JSON or JUnit. Pure functions from data to strings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from capsmith.formats import JUnitCase, format_junit_cases
from capsmith.judge.running.model import CheckOutcome, CheckResult, ConformanceReport, ObjectChange

_VIOLATED = (CheckOutcome.FAILED, CheckOutcome.WARNING)


def render_lines(result: CheckResult) -> Iterator[str]:
    """Yield the lines of text output for a result."""
    yield f"{result.outcome}: {result.name} ({', '.join(result.rules)}): {result.title}"
    if result.message:
        label = "reason" if result.outcome is CheckOutcome.SKIPPED else "what happened"
        first, *rest = result.message.splitlines()
        yield f"    {label}: {first}"
        yield from (f"        {line}" for line in rest)
    if result.subject:
        yield f"    at: {' '.join(part for part in (result.subject, result.path) if part)}"
    if result.outcome in _VIOLATED:
        if result.hint:
            yield f"    hint: {result.hint}"
        yield from (f"    see: {link}" for link in result.links)


def render_summary(report: ConformanceReport) -> str:
    """Return the last line of the text output: provider, contract, and counts by outcome."""
    words = {
        outcome: "warnings" if outcome is CheckOutcome.WARNING else outcome
        for outcome in CheckOutcome
    }
    counts = ", ".join(f"{report.count(outcome)} {word}" for outcome, word in words.items())
    return f"capsmith conformance: {report.provider}, contract {report.contract}: {counts}."


def make_data(report: ConformanceReport) -> dict[str, Any]:
    """Return the report as plain data for ``--format json``."""
    return {
        "exitCode": report.exit_code,
        "provider": report.provider,
        "contract": report.contract,
        "summary": {outcome.value: report.count(outcome) for outcome in CheckOutcome},
        "results": [_result(result) for result in report.results],
    }


def _result(result: CheckResult) -> dict[str, Any]:
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
        "objects": [
            {"object": life.subject, "changes": [_change(each) for each in life.changes]}
            for life in result.lives
        ],
        "objectsLeftOut": result.lives_left_out,
        "logs": [{"manager": log.manager, "lines": list(log.lines)} for log in result.logs],
    }


def _change(change: ObjectChange) -> dict[str, Any]:
    return {
        "after": change.seconds,
        "what": change.what,
        "path": change.path,
        "writer": change.writer,
    }


def render_junit(report: ConformanceReport) -> str:
    """Return a JUnit report in XML with a test case for each check."""
    cases = [
        JUnitCase(
            ",".join(result.rules),
            result.name,
            _junit_outcome(result, report),
            result.message,
            "\n".join(render_lines(result)),
            result.seconds,
        )
        for result in report.results
    ]
    name = f"capsmith conformance {report.provider}"
    return format_junit_cases(name, cases, can_skip=True)


def _junit_outcome(
    result: CheckResult, report: ConformanceReport
) -> Literal["passed", "noted", "failed", "skipped"]:
    """Return the outcome for JUnit, which does not support warnings."""
    match result.outcome:
        case CheckOutcome.PASSED:
            return "passed"
        case CheckOutcome.SKIPPED:
            return "skipped"
        case CheckOutcome.WARNING if not report.strict:
            return "noted"
    return "failed"
