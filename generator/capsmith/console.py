"""The only code that prints: reports and data, as text or for machines."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

import click

from capsmith import __version__
from capsmith.errors import CapsmithError
from capsmith.findings import Finding, Severity, has_errors
from capsmith.formats import junit, sarif
from capsmith.report import Outcome, Report

_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}
_DIFF_COLOURS = {"+": "green", "-": "red", "@": "cyan"}
_QUIET = {Outcome.UNCHANGED}
_NAMED = {Outcome.REFUSED, Outcome.CONFLICTED, Outcome.MERGED, Outcome.REMOVED}


class Console:
    """Shows results in one format on one stream; colours only on a terminal."""

    def __init__(self, format: str = "text", out: TextIO | None = None, verbose: bool = False):
        self._format = format
        self._out = out if out is not None else sys.stdout
        self._verbose = verbose

    def report(self, report: Report, done: str, facts: Mapping[str, Any] | None = None) -> None:
        """Findings and file outcomes; ``done`` is the closing line when the answer is yes.

        ``facts`` are for machines only, beside the rest.
        """
        if self._format == "json" and facts is not None:
            self.data({**report_data(report, report.exit_code), "facts": facts})
            return
        if self._machine(report, report.exit_code):
            return
        self._findings(report.findings)
        self._outcomes(report)
        self._diffs(report)
        if report.exit_code == 0 and done:
            self._line(printable(done))

    def failure(self, error: CapsmithError) -> None:
        """An error that stopped the work: on standard error, or as the JSON report."""
        if self._machine(Report(findings=(error.finding,)), error.exit_code):
            return
        for line in finding_lines(error.finding):
            click.echo(line, file=sys.stderr)

    def data(self, value: Any) -> None:
        """A value as JSON, with a stable order of keys as given."""
        self._line(json.dumps(value, indent=2, ensure_ascii=False), "json")

    def text(self, text: str) -> None:
        """Text as it is."""
        self._line(text)

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        """Rows in aligned columns; the last column is left ragged."""
        if not rows:
            return
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
        for row in rows:
            cells = [cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=True)]
            self._line("  ".join([*cells, row[-1]]).rstrip())

    def _machine(self, report: Report, exit_code: int) -> bool:
        """Show the report in a machine's format, if that is what was asked for."""
        match self._format:
            case "json":
                self.data(report_data(report, exit_code))
            case "sarif":
                self._line(sarif(report.findings, __version__))
            case "junit":
                self._line(junit(report.findings, "capsmith"))
            case _:
                return False
        return True

    def _findings(self, findings: Sequence[Finding]) -> None:
        for finding in findings:
            first, *rest = finding_lines(finding)
            self._line(click.style(first, fg=_COLOURS[finding.severity]))
            for line in rest:
                self._line(line)
        if has_errors(list(findings)):
            count = sum(1 for finding in findings if finding.severity is Severity.ERROR)
            self._line(f"{count} {'error' if count == 1 else 'errors'}.")

    def _outcomes(self, report: Report) -> None:
        for outcome in Outcome:
            paths = [file.path for file in report.outcomes if file.outcome is outcome]
            if not paths:
                continue
            self._line(f"{outcome}: {len(paths)} {'file' if len(paths) == 1 else 'files'}")
            if outcome in _NAMED or (self._verbose and outcome not in _QUIET):
                for path in paths:
                    self._line(f"  {path}")

    def _diffs(self, report: Report) -> None:
        for line in "".join(file.diff for file in report.outcomes).splitlines():
            shown = printable(line.replace("\t", "    "))
            self._line(click.style(shown, fg=_DIFF_COLOURS.get(line[:1])))

    def _line(self, text: str, format: str | None = None) -> None:
        # click drops the colours when the stream is no terminal.
        click.echo(self._encodable(text, format or self._format), file=self._out)

    def _encodable(self, text: str, format: str) -> str:
        """``text`` in characters that the stream has, and with the same meaning."""
        try:
            text.encode(getattr(self._out, "encoding", None) or "utf-8")
        except UnicodeEncodeError:
            match format:
                case "json" | "sarif":
                    return "".join(c if c.isascii() else json.dumps(c)[1:-1] for c in text)
                case "junit":
                    return text.encode("ascii", "xmlcharrefreplace").decode()
                case _:
                    return text.encode("ascii", "backslashreplace").decode()
        return text


def finding_lines(finding: Finding) -> list[str]:
    """A finding as text: what is wrong, then what to do and where it is written."""
    where = f"{finding.location}: " if finding.location.file else ""
    lines = [f"{where}{finding.severity} {finding.id}: {finding.message}"]
    if finding.hint:
        lines.append(f"    hint: {finding.hint}")
    if finding.link:
        lines.append(f"    see: {finding.link}")
    return [printable(line) for line in lines]


def printable(text: str) -> str:
    """``text`` with what a terminal would obey, such as in a file's name, made visible."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def report_data(report: Report, exit_code: int) -> Mapping[str, Any]:
    """A report as plain data, the shape of ``--format json``."""
    return {
        "exitCode": exit_code,
        "findings": [finding_data(finding) for finding in report.findings],
        "files": [
            {"path": f.path, "outcome": str(f.outcome), **({"diff": f.diff} if f.diff else {})}
            for f in report.outcomes
        ],
    }


def finding_data(finding: Finding) -> Mapping[str, Any]:
    """A finding as plain data."""
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
