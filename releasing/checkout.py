"""The commit that is released."""

from __future__ import annotations

from pathlib import Path

from releasing.commands import FailedError, run


def commit_time(root: Path) -> str:
    """Return the time of the commit as a decimal number of seconds since 1970.

    An unpacked source distribution has no commit; there it is the first time that a zip can hold.
    """
    if not (root / ".git").exists():
        return "315532800"
    return run(["git", "log", "-1", "--format=%ct"], root).strip()


def check_checkout(root: Path, tag: str) -> None:
    """Raise FailedError unless the working tree is exactly the commit of ``tag``."""
    changed = run(["git", "status", "--porcelain"], root)
    if changed:
        raise FailedError(f"the working tree differs from its commit:\n{changed}")
    tags = run(["git", "tag", "--points-at", "HEAD"], root).split()
    if tag not in tags:
        raise FailedError(f"HEAD is not {tag}; it has {', '.join(tags) or 'no tag'}")
