"""The error tree.

CapsmithError
├── UnreadableInput   a file that cannot be read or is not what it must be     exit 2
├── Refused           capsmith will not do this to the tree that it was given  exit 1
├── DiskError         the disk refuses: full, read-only, no permission          exit 2
└── BlueprintError    a blueprint (capsmith's or an overlay's) is broken       exit 2

Wrong *content* is never an exception: it is a :class:`capsmith.findings.Finding`.
"""

from __future__ import annotations

from capsmith.findings import Finding, Location


class CapsmithError(Exception):
    """Something that stops the work, told as a finding so that every output can show it."""

    exit_code = 2

    def __init__(self, id: str, message: str, *, file: str = "", line: int = 0, hint: str) -> None:
        super().__init__(message)
        self.finding = Finding(
            id=id, message=message, location=Location(file, line, 1 if line else 0), hint=hint
        )


class UnreadableInput(CapsmithError):
    """The input cannot be read: missing, not text, too large, a symlink, not YAML."""


class Refused(CapsmithError):
    """Doing it could lose something of the user's."""

    exit_code = 1


class DiskError(CapsmithError):
    """The disk does not do what it is asked to."""


class BlueprintError(CapsmithError):
    """A blueprint does not render, or lets unquoted text through."""
