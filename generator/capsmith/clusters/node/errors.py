"""Errors from nodes. Each contains a finding for the user."""

from __future__ import annotations

import json
import os
from contextlib import suppress

from capsmith.errors import CapsmithError


class NodeError(CapsmithError):
    """Raised if a node cannot be started, or if a command on it fails."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__("lab-node-failed", message, hint=hint)


class HostUnsuitable(CapsmithError):
    """Raised if this computer cannot run a node; the message lists everything that is missing."""

    def __init__(self, missing: list[str]) -> None:
        message = f"this computer cannot run a node: {'; '.join(missing)}"
        hint = "Provide what is missing, or run capsmith lab without a node: it needs none of it."
        super().__init__("lab-node-host", message, hint=hint)


def report_error(error: CapsmithError) -> None:
    """Report an error in the form that the waiting command expects from the lab's supervisor.

    Does nothing if that command has exited.
    """
    finding = error.finding
    line = json.dumps({"error": [finding.id, finding.message, finding.hint, finding.location.file]})
    with suppress(OSError):
        os.write(1, f"{line}\n".encode())
