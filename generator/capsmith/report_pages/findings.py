"""Group findings into report sections, with relative file names."""

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
    """Yield one section for each severity that occurs, most severe first.

    File names are made relative to ``folder``.
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
    """Return the location with an absolute file path made relative to ``folder``."""
    return replace(location, file=relocate_path(location.file, folder))


def relocate_path(path: str, folder: str) -> str:
    """Return an absolute path relative to ``folder``, or any other path unchanged."""
    return posixpath.relpath(path, folder) if path.startswith("/") else path
