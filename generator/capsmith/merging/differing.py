"""The difference between two states of a file, for display."""

from __future__ import annotations

import difflib


def difference(path: str, before: bytes | None, after: bytes | None) -> str:
    """Return a unified diff; empty when there is no difference.  None is a missing file."""
    if before == after:
        return ""
    if any(content is not None and b"\0" in content for content in (before, after)):
        return f"Binary files a/{path} and b/{path} differ\n"
    lines = difflib.unified_diff(
        _lines(before),
        _lines(after),
        f"a/{path}" if before is not None else "/dev/null",
        f"b/{path}" if after is not None else "/dev/null",
        lineterm="\n",
    )
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def _lines(content: bytes | None) -> list[str]:
    text = (content or b"").decode(errors="backslashreplace")
    parts = text.split("\n")
    return [part + "\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])
