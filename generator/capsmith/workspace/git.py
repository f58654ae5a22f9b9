"""Ask git for uncommitted changes, and for what is not checked out.  git is optional."""

from __future__ import annotations

import os
from pathlib import Path

from capsmith.errors import Refused

_NO_REPOSITORY = 128
_TIMEOUT = 120.0
"""Timeout of a git command, in seconds."""
WHOLE_FOLDER = "."
"""The path that :func:`list_uncommitted` returns for the folder itself."""


def list_uncommitted(folder: Path) -> tuple[str, ...]:
    """Return the paths with uncommitted changes, relative to ``folder``, except ignored files.

    An untracked folder is one path with a slash at its end, or ``WHOLE_FOLDER`` if git tracks no
    file of ``folder`` at all.  Empty if git is missing or ``folder`` is not in a work tree.  Raises
    Refused (``git-unusable``) if git fails.
    """
    prefix = _git(folder, "rev-parse", "--show-prefix")
    if prefix is None:
        return ()
    status = _git(folder, "status", "--porcelain=v1", "-z", "--no-renames", "--", ".") or b""
    start = len(prefix.rstrip(b"\n"))
    entries = status.split(b"\0")[:-1]
    return tuple(os.fsdecode(entry[3 + start :]) or WHOLE_FOLDER for entry in entries)


def list_hidden(folder: Path) -> frozenset[str]:
    """Return the tracked files that a sparse checkout has left out, relative to ``folder``.

    Empty if git is missing or ``folder`` is not in a work tree.  Raises the same error as
    :func:`list_uncommitted`.
    """
    listing = _git(folder, "ls-files", "-t", "-z", "--", ".") or b""
    entries = listing.split(b"\0")[:-1]
    return frozenset(os.fsdecode(each[2:]) for each in entries if each.startswith(b"S "))


def locate_in_work_tree(folder: Path) -> tuple[str, str]:
    """Return the root of the work tree that contains ``folder``, and the path of ``folder`` in it.

    The path ends with a slash, and is empty for the root itself.  Both are empty without a work
    tree.  Raises the same error as :func:`list_uncommitted`.
    """
    root = _git(folder, "rev-parse", "--show-toplevel") or b""
    prefix = _git(folder, "rev-parse", "--show-prefix") or b""
    return os.fsdecode(root.removesuffix(b"\n")), os.fsdecode(prefix.removesuffix(b"\n"))


def _git(folder: Path, *arguments: str) -> bytes | None:
    """Return the output of a git command, or None if git or a work tree is missing."""
    # Imported only to run git, because a first run does not need it.
    import subprocess

    # The folder decides, and not the environment of a hook that runs capsmith.  Looking must not
    # write, and must not start a file system monitor.  Clean filters do run, because git-lfs files
    # would otherwise be reported as changed; only this computer's configuration, which is not
    # cloned, can name one.
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("GIT_")
    } | {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}
    command = ["git", "-c", "core.fsmonitor=false", *arguments]
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, timeout=_TIMEOUT
        )
    except FileNotFoundError:
        return None
    except (OSError, subprocess.SubprocessError) as error:
        raise _silent(folder, str(error)) from error
    if done.returncode == 0:
        return done.stdout
    message = done.stderr.decode(errors="replace").strip()
    if done.returncode == _NO_REPOSITORY and "not a git repository" in message:
        return None
    raise _silent(folder, message)


def _silent(folder: Path, message: str) -> Refused:
    return Refused(
        "git-unusable",
        f"git cannot report uncommitted changes of this folder: {message}",
        file=str(folder),
        hint="Correct the cause, or run this with --allow-dirty.",
    )
