"""Print reports and data as text, JSON, SARIF, JUnit, HTML or Markdown. No other module prints.

Results go to standard output in a single format; progress and fatal errors go to standard error, so
the output of ``--format json`` can always be parsed.  Everything that comes from a file, a name or
another program is passed through :func:`capsmith.printable.make_printable`, because a control
character in it could manipulate the terminal.  In all formats, long values are shortened by
:mod:`capsmith.shorten`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TextIO

import click

from capsmith import __version__
from capsmith.errors import CapsmithError
from capsmith.findings import Finding, Severity, has_errors
from capsmith.printable import make_printable
from capsmith.report import Outcome, Report, RuntimeOutcome
from capsmith.shorten import shorten, shorten_lines

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from capsmith.judge.release.model import Verdict
    from capsmith.judge.running.model import CheckResult
    from capsmith.judge.running.model import ConformanceReport as BehaviourReport
    from capsmith.report_pages.model import ReportPage


_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}
_OUTCOME_COLOURS = {
    **{"passed": "green", "failed": "red"},
    **{"warning": "yellow", "skipped": "yellow"},
}
_DIFF_COLOURS = {"+": "green", "-": "red", "@": "cyan"}
_QUIET = {Outcome.UNCHANGED}
_NAMED = {Outcome.REFUSED, Outcome.CONFLICTED, Outcome.MERGED, Outcome.REMOVED}


class Console:
    """Prints results in one format to one stream, with colours only on a terminal.

    Setting the environment variable ``NO_COLOR`` to any value disables colours.  ``format`` is the
    value of the option ``--format``; ``out`` is standard output by default. ``verbose`` lists every
    changed file, not only the files that need attention.
    """

    def __init__(self, format: str = "text", out: TextIO | None = None, verbose: bool = False):
        self._format = format
        self._out = out if out is not None else sys.stdout
        self._verbose = verbose
        # None lets click decide: it prints colours on a terminal.
        self._color = False if os.environ.get("NO_COLOR") else None

    def print_report(
        self, report: Report, done: str, facts: Mapping[str, Any] | None = None
    ) -> None:
        """Print findings and file outcomes. ``done`` is the last line if the run succeeded.

        ``facts`` appear only in JSON output, under the key ``facts``.
        """
        report = replace(report, findings=tuple(map(_shorten, report.findings)))
        if self._format == "json" and facts is not None:
            self.print_data({**convert_report(report, report.exit_code), "facts": facts})
            return
        if self._machine(report, report.exit_code):
            return
        self._findings(report.findings)
        self._outcomes(report)
        self._diffs(report)
        if report.exit_code == 0 and done:
            self._line(make_printable(done))

    def print_next_commands(self, commands: Sequence[str]) -> None:
        """Print commands for the user to run next, one per line, but only in text format."""
        if commands and self._format == "text":
            for line in ("Next:", *(f"    {command}" for command in commands)):
                self._line(make_printable(line))

    def print_verdict(self, verdict: Verdict) -> None:
        """Print a verdict. In text format, a summary follows the violations."""
        from capsmith.judge.release import output

        verdict = verdict.shorten()
        match self._format:
            case "json":
                self.print_data(output.make_data(verdict))
            case "sarif":
                self._line(output.render_sarif(verdict, __version__))
            case "junit":
                self._line(output.render_junit(verdict))
            case _:
                for violation in verdict.violations:
                    head, *rest = output.render_lines(violation)
                    colour = _COLOURS[violation.finding().severity]
                    self._line(click.style(make_printable(head), fg=colour))
                    for line in rest:
                        self._line(make_printable(line))
                for text in output.render_migration(verdict.migration) if verdict.migration else ():
                    self._line(make_printable(text))
                for text in verdict.not_judged:
                    self._line(make_printable(f"not judged: {text}"))
                for text in verdict.left_out:
                    self._line(make_printable(f"left out: {text}"))
                for text in verdict.unanswered:
                    self._line(make_printable(f"not answered: {text}"))
                self._line(make_printable(output.render_summary(verdict)))

    def print_page(self, page: ReportPage) -> None:
        """Print a page in HTML or Markdown. Print nothing in other formats."""
        # Imported here: Jinja is slow to import, and only pages need it.
        if self._format == "html":
            from capsmith.report_pages import html

            self._line(html.render(page))
        elif self._format == "markdown":
            from capsmith.report_pages import markdown

            self._line(markdown.render(page))

    def print_progress(self, text: str) -> None:
        """Print a line about a slow step to standard error, if that is a terminal."""
        if sys.stderr.isatty():
            click.echo(make_printable(text), file=sys.stderr)

    def show_working(self, text: str) -> AbstractContextManager[None]:
        """Return a context manager that shows ``text`` and the progress of the work inside it.

        Both appear on standard error, and only if that is a terminal.
        """
        # Imported here, because commands that are short show nothing.
        from capsmith.working import show_working

        return show_working(text)

    def print_step(self, text: str) -> None:
        """Print a line about a step to standard error, whether or not it is a terminal."""
        click.echo(make_printable(text), file=sys.stderr)

    def print_result(self, result: CheckResult) -> None:
        """Print a check's result as soon as it is known, but only in text format."""
        from capsmith.judge.running import output

        result = result.shorten()
        if self._format == "text":
            head, *rest = output.render_lines(result)
            self._line(click.style(make_printable(head), fg=_OUTCOME_COLOURS[result.outcome.value]))
            for line in rest:
                self._line(make_printable(line))

    def print_conformance(self, report: BehaviourReport) -> None:
        """Print the report of a conformance run.

        In text format, print only a summary, because :meth:`print_result` has printed each result.
        """
        from capsmith.judge.running import output

        report = replace(report, results=tuple(each.shorten() for each in report.results))
        match self._format:
            case "json":
                self.print_data(output.make_data(report))
            case "junit":
                self._line(output.render_junit(report))
            case _:
                self._line(make_printable(output.render_summary(report)))

    def print_failure(self, error: CapsmithError) -> None:
        """Print an error that stopped the run.

        Text goes to standard error, and machine-readable formats go to standard output.
        """
        # Output and logs of several lines are shortened line by line.
        findings = tuple(
            each._replace(message=shorten_lines(each.message)) for each in error.findings
        )
        if self._machine(Report(findings=findings), error.exit_code):
            return
        for finding in findings:
            first, *rest = format_finding(_without_details(finding))
            details = finding.message.splitlines()[1:]
            for line in [first, *(f"    {make_printable(each)}" for each in details), *rest]:
                click.echo(line, file=sys.stderr)

    def print_data(self, value: Any) -> None:
        """Print a value as JSON. The order of keys is preserved."""
        from capsmith.formats import format_json

        self._line(format_json(value), "json")

    def print_text(self, text: str) -> None:
        """Print a string and a newline. Control characters are printed unchanged."""
        self._line(text)

    def print_table(self, rows: Sequence[Sequence[str]]) -> None:
        """Print rows of equal length as aligned columns. The last column is not padded."""
        if not rows:
            return
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
        for row in rows:
            cells = [cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=True)]
            self._line("  ".join([*cells, row[-1]]).rstrip())

    def _machine(self, report: Report, exit_code: int) -> bool:
        """Print the report in a machine-readable format, if one was chosen.

        Returns whether it was printed.
        """
        match self._format:
            case "json":
                self.print_data(convert_report(report, exit_code))
            case "sarif":
                from capsmith.formats import format_sarif

                self._line(format_sarif(report.findings, __version__))
            case "junit":
                from capsmith.formats import format_junit

                self._line(format_junit(report.findings, "capsmith"))
            case _:
                return False
        return True

    def _findings(self, findings: Sequence[Finding]) -> None:
        for finding in findings:
            first, *rest = format_finding(finding)
            self._line(click.style(first, fg=_COLOURS[finding.severity]))
            for line in rest:
                self._line(line)
        if has_errors(list(findings)):
            count = sum(1 for finding in findings if finding.severity is Severity.ERROR)
            self._line(f"{count} {'error' if count == 1 else 'errors'}.")

    def _outcomes(self, report: Report) -> None:
        if report.runtime is not None and report.runtime.outcome is not Outcome.UNCHANGED:
            self._line(format_runtime(report.runtime))
        for outcome in Outcome:
            paths = [file.path for file in report.outcomes if file.outcome is outcome]
            if not paths:
                continue
            self._line(f"{outcome}: {len(paths)} {'file' if len(paths) == 1 else 'files'}")
            if outcome in _NAMED or (self._verbose and outcome not in _QUIET):
                for path in paths:
                    self._line(f"  {path}")

    def _diffs(self, report: Report) -> None:
        for line in "".join(file.diff for file in report.outcomes).split("\n")[:-1]:
            self._line(click.style(_patch_line(line), fg=_DIFF_COLOURS.get(line[:1])))

    def _line(self, text: str, format: str | None = None) -> None:
        line = self._encodable(text, format or self._format)
        click.echo(line, file=self._out, color=self._color)

    def _encodable(self, text: str, format: str) -> str:
        """Return ``text`` with characters escaped that the stream cannot encode."""
        try:
            # A terminal or a pipe may have an encoding such as ASCII or cp1252, and a report must
            # not fail because of that.  Each format has its own escapes, so that the output stays
            # valid.
            text.encode(getattr(self._out, "encoding", None) or "utf-8")
        except UnicodeEncodeError:
            match format:
                case "json" | "sarif":
                    return "".join(c if c.isascii() else json.dumps(c)[1:-1] for c in text)
                case "junit" | "html":
                    return text.encode("ascii", "xmlcharrefreplace").decode()
                case _:
                    return text.encode("ascii", "backslashreplace").decode()
        return text


def _shorten(finding: Finding) -> Finding:
    return finding._replace(message=shorten(finding.message), hint=shorten(finding.hint))


def format_runtime(runtime: RuntimeOutcome) -> str:
    """Return one line of text that describes how a run changed the runtime library."""
    if runtime.outcome is Outcome.KEPT:
        return f"runtime: kept, a fork of {runtime.version}"
    former = runtime.former_version
    change = f"{former} -> {runtime.version}" if former not in ("", runtime.version) else ""
    return f"runtime: {change or runtime.version} ({runtime.mode}, {runtime.outcome})"


def _without_details(finding: Finding) -> Finding:
    """Return the finding with only the first line of its message; the rest is output or a log."""
    return finding._replace(message=next(iter(finding.message.splitlines()), ""))


def format_finding(finding: Finding) -> list[str]:
    """Return a finding as printable lines: the problem, the hint, and the link to the rule."""
    where = f"{finding.location}: " if finding.location.file else ""
    lines = [f"{where}{finding.severity} {finding.id}: {finding.message}"]
    if finding.hint:
        lines.append(f"    hint: {finding.hint}")
    if finding.link:
        lines.append(f"    see: {finding.link}")
    return [make_printable(line) for line in lines]


def _patch_line(line: str) -> str:
    """Make a line of a diff printable, except for tabs and the line ending."""
    ended = line.removesuffix("\r")
    return "\t".join(map(make_printable, ended.split("\t"))) + line[len(ended) :]


def convert_report(report: Report, exit_code: int) -> Mapping[str, Any]:
    """Return a report as the plain data that ``--format json`` prints."""
    return {
        "exitCode": exit_code,
        "findings": [convert_finding(finding) for finding in report.findings],
        "runtime": _runtime_data(report.runtime),
        "files": [
            {"path": f.path, "outcome": str(f.outcome), **({"diff": f.diff} if f.diff else {})}
            for f in report.outcomes
        ],
    }


def _runtime_data(runtime: RuntimeOutcome | None) -> Mapping[str, Any] | None:
    if runtime is None:
        return None
    return {
        "mode": runtime.mode,
        "version": runtime.version,
        "formerVersion": runtime.former_version or None,
        "outcome": str(runtime.outcome),
    }


def convert_finding(finding: Finding) -> Mapping[str, Any]:
    """Return a finding as plain data."""
    return {
        "id": finding.id,
        "severity": str(finding.severity),
        "message": finding.message,
        "hint": finding.hint,
        "link": finding.link,
        "file": finding.location.file,
        "line": finding.location.line,
        "column": finding.location.column,
    }
