"""Group findings into sections of a report, with relative file names."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import replace

from capsmith.findings import Finding, Location, Severity
from capsmith.report_pages.model import Entry, Group, Section

_TITLES = {
    Severity.ERROR: "Errors",
    Severity.WARNING: "Warnings",
    Severity.INFO: "Notices",
}


def make_sections(findings: Sequence[Finding], folder: str) -> Iterator[Section]:
    """Yield one section for each severity that occurs, the most severe first.

    File names become relative to ``folder``.
    """
    for severity, title in _TITLES.items():
        entries = tuple(
            Entry(
                finding.id,
                finding.message,
                relocate(finding.location, folder),
                hint=finding.hint,
                link=finding.link,
            )
            for finding in findings
            if finding.severity is severity
        )
        if entries:
            yield Section(title, (Group("", entries),))


def relocate(location: Location, folder: str) -> Location:
    """Return the location with its file relative to ``folder`` if the file has an absolute path."""
    return replace(location, file=relocate_path(location.file, folder))


def relocate_path(path: str, folder: str) -> str:
    """Return an absolute path relative to ``folder``, and any other path unchanged."""
    return posixpath.relpath(path, folder) if path.startswith("/") else path
