"""Processes of this machine, by what their command line says."""

from __future__ import annotations

from pathlib import Path


def running_with(text: str) -> list[str]:
    """Return the command lines of processes that contain a text."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace").split("\0")
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
        if any(text in word for word in words):
            found.append(" ".join(words))
    return found
