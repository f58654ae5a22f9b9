"""A place in a document, at which checks report their findings."""

from __future__ import annotations

from typing import NamedTuple

from capsmith.findings import Finding, Location, Severity
from capsmith.yamldoc.compose import Path
from capsmith.yamldoc.document import Document


class Place(NamedTuple):
    """A path into the document, and what is true of everything below it."""

    document: Document
    path: Path
    findings: list[Finding]
    correlated: bool = True
    """Whether the API server can pair old and new values here; it cannot inside atomic lists."""
    bounded: bool = True
    """Whether the lists and maps around it have a maximum size."""

    def at(self, *below: str | int) -> Place:
        """Return the place ``below`` this one."""
        return self._replace(path=self.path + below)

    def error(self, id: str, message: str, hint: str, *below: str | int) -> None:
        """Report an error at the value of this place, or of one below."""
        self._add(Severity.ERROR, id, message, hint, self.document.value(self.path + below))

    def error_inside(
        self, id: str, message: str, hint: str, position: tuple[int, int] | None
    ) -> None:
        """Report an error at a line and column, from 1, of the text that is the value here."""
        where = self.document.value(self.path)
        if position is not None:
            where = self.document.inside(self.path, *position)
        self._add(Severity.ERROR, id, message, hint, where)

    def warning(self, id: str, message: str, hint: str, *below: str | int) -> None:
        """Report a warning at the value of this place, or of one below."""
        self._add(Severity.WARNING, id, message, hint, self.document.value(self.path + below))

    def error_at_key(self, id: str, message: str, hint: str, *below: str | int) -> None:
        """Report an error at the key of this place, or of one below."""
        self._add(Severity.ERROR, id, message, hint, self.document.key(self.path + below))

    def _add(self, severity: Severity, id: str, message: str, hint: str, where: Location) -> None:
        self.findings.append(Finding(id, message, where, severity, hint))
