"""Report findings at paths of a YAML document."""

from __future__ import annotations

from dataclasses import dataclass, replace

from capsmith.findings import Finding, Location, Severity
from capsmith.yamldoc.compose import Path
from capsmith.yamldoc.document import Document


@dataclass(frozen=True, slots=True)
class PathReporter:
    """Reports findings at a path of a document, or at paths below it.

    Reporters of one document append to the same list ``findings``, so checks return nothing.  The
    list is unsorted and may contain duplicates; :class:`capsmith.report.Report` removes them.

    Example::

        findings: list[Finding] = []
        top = PathReporter(document, (), findings)
        top.at("releases").add_error("release-order", message, hint, "v0.1")
    """

    document: Document
    path: Path
    findings: list[Finding]
    correlated: bool = True
    """Whether the API server can pair old and new values at the path; False inside atomic lists."""
    bounded: bool = True
    """Whether the lists and maps around the path have a maximum size."""

    def at(self, *below: str | int) -> PathReporter:
        """Return a reporter for the path ``below`` this one, with the same list of findings."""
        return replace(self, path=self.path + below)

    def add_error(self, id: str, message: str, hint: str, *below: str | int) -> None:
        """Report an error at the value of this path, or of a path ``below`` it.

        If the document lacks the path, the error is at its nearest existing parent.
        """
        self._add(Severity.ERROR, id, message, hint, self.document.value(self.path + below))

    def add_error_inside(
        self, id: str, message: str, hint: str, position: tuple[int, int] | None
    ) -> None:
        """Report an error at a line and column (from 1) inside the string value of this path.

        If ``position`` is None, the error is at the whole value.
        """
        where = self.document.value(self.path)
        if position is not None:
            where = self.document.inside(self.path, *position)
        self._add(Severity.ERROR, id, message, hint, where)

    def add_warning(self, id: str, message: str, hint: str, *below: str | int) -> None:
        """Report a warning at the value of this path, or of a path ``below`` it."""
        self._add(Severity.WARNING, id, message, hint, self.document.value(self.path + below))

    def add_error_at_key(self, id: str, message: str, hint: str, *below: str | int) -> None:
        """Report an error at the key of this path, or of a path ``below`` it."""
        self._add(Severity.ERROR, id, message, hint, self.document.key(self.path + below))

    def _add(self, severity: Severity, id: str, message: str, hint: str, where: Location) -> None:
        self.findings.append(Finding(id, message, where, severity, hint))
