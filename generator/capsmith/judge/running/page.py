"""Make a report page for a conformance run: violated rules, passed checks, and skipped checks."""

from __future__ import annotations

from collections.abc import Iterator

from capsmith import __version__
from capsmith.judge.running.model import CheckOutcome, CheckResult, ConformanceReport
from capsmith.judge.running.output import render_summary
from capsmith.report_pages.model import Entry, Fact, Group, Life, Log, Moment, ReportPage, Section

_TITLES = {
    CheckOutcome.FAILED: "Failed",
    CheckOutcome.WARNING: "Warnings",
    CheckOutcome.SKIPPED: "Skipped",
}


def make_page(report: ConformanceReport, command: str) -> ReportPage:
    """Return the report as a page. ``command`` is the command line that repeats the run.

    Times are relative to the beginning of each check, so equal results produce identical bytes.
    """
    return ReportPage(
        title=f"capsmith conformance {report.provider}",
        verdict=render_summary(report),
        has_failed=bool(report.exit_code),
        facts=(
            Fact("Judged by", f"capsmith {__version__}"),
            Fact("Provider", report.provider),
            Fact("Contract", report.contract),
        ),
        command=command,
        sections=tuple(_sections(report)),
        held=tuple(
            Fact(result.name, f"{result.title} ({', '.join(result.rules)})", _convert_lives(result))
            for result in report.results
            if result.outcome is CheckOutcome.PASSED
        ),
    )


def _sections(report: ConformanceReport) -> Iterator[Section]:
    for outcome, title in _TITLES.items():
        entries = tuple(_entry(each) for each in report.results if each.outcome is outcome)
        if entries:
            yield Section(title, (Group("", entries),))


def _entry(result: CheckResult) -> Entry:
    first, *details = result.message.splitlines() or [""]
    return Entry(
        id=result.name,
        message=first or result.title,
        subject=" ".join(part for part in (result.subject, result.path) if part),
        rule=f"{result.title} ({', '.join(result.rules)})",
        hint=result.hint if result.outcome is not CheckOutcome.SKIPPED else "",
        link=next(iter(result.links), ""),
        details=tuple(details),
        lives=_convert_lives(result),
        logs=tuple(Log(each.manager, each.lines) for each in result.logs),
    )


def _convert_lives(result: CheckResult) -> tuple[Life, ...]:
    lives = [
        Life(
            life.subject,
            tuple(Moment(each.seconds, each.what, each.writer) for each in life.changes),
        )
        for life in result.lives
    ]
    if result.lives_left_out:
        lives.append(Life(f"{result.lives_left_out} more objects are left out", ()))
    return tuple(lives)
