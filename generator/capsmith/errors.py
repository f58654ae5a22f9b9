"""The hierarchy of errors, with their exit codes.

CapsmithError
├── UnreadableInput   a file that cannot be read or has the wrong form         exit 2
├── Refused           the operation could lose the user's data                 exit 1
├── DiskError         a disk operation failed: full, read-only, no permission  exit 2
├── BlueprintError    a blueprint (capsmith's or an overlay's) is broken       exit 2
└── errors of capsmith.clusters.processes: a tool, process or Deployment       exit 2

Wrong *content* is never an exception: it is a :class:`capsmith.findings.Finding`.
"""

from __future__ import annotations

from capsmith.findings import Finding, Location


class CapsmithError(Exception):
    """An error that stops the run. It contains findings, so that every format can show it."""

    exit_code = 2

    def __init__(self, id: str, message: str, *, file: str = "", line: int = 0, hint: str) -> None:
        super().__init__(message)
        self.finding = Finding(
            id=id, message=message, location=Location(file, line, 1 if line else 0), hint=hint
        )
        self.others: tuple[Finding, ...] = ()
        """Findings about other files for the same reason, so that a run reports all at once."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Return all findings, first the one that gives the exception its message."""
        return (self.finding, *self.others)


class UnreadableInput(CapsmithError):
    """Raised for input that cannot be read: missing, not text, too large, a symlink, not YAML."""


class Refused(CapsmithError):
    """Raised if the requested operation could lose the user's data."""

    exit_code = 1


class DiskError(CapsmithError):
    """Raised if a disk operation fails, for example because the disk is full or read-only."""


class BlueprintError(CapsmithError):
    """Raised for a blueprint that does not render or prints unsafe text."""


class InvalidOption(ValueError):
    """Raised for an option that is invalid, or contradicts the input or another option.

    Commands report it as a usage error.
    """
