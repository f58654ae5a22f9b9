"""Ask git for uncommitted, hidden and ignored files.  git is optional."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from capsmith.errors import Refused

_NONE_IGNORED = 1
_NO_REPOSITORY = 128
_TIMEOUT = 120.0
"""Timeout of a git command, in seconds."""
_SETTINGS = {
    "LC_ALL": "C",
    "GIT_OPTIONAL_LOCKS": "0",
    # A partial clone fetches objects that it lacks.  git has had the first since 2.45.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
}
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


class IgnoredFile(NamedTuple):
    """A file that git neither tracks nor will add, and the pattern that is the reason."""

    path: str
    source: str
    """Path of the file with the pattern, relative to the folder that was asked about if inside."""
    line: int
    """Line of the pattern, from 1."""
    pattern: str


def list_ignored(folder: Path, paths: Iterable[str]) -> tuple[IgnoredFile, ...]:
    """Return those of ``paths``, which are relative to ``folder``, that git ignores.

    Tracked files are not ignored, whatever the patterns say.  Empty if git is missing or ``folder``
    is not in a work tree.  Raises the same error as :func:`list_uncommitted`.
    """
    named = b"".join(os.fsencode(path) + b"\0" for path in paths)
    listing = _git(folder, "check-ignore", "--verbose", "-z", "--stdin", stdin=named) or b""
    fields = [os.fsdecode(each) for each in listing.split(b"\0")[:-1]]
    # Source, line, pattern and path of each; a pattern with `!` is the reason not to ignore it.
    found = zip(fields[::4], fields[1::4], fields[2::4], fields[3::4], strict=True)
    return tuple(
        IgnoredFile(path, source, int(line), pattern)
        for source, line, pattern, path in found
        if not pattern.startswith("!")
    )


def locate_in_work_tree(folder: Path) -> tuple[str, str]:
    """Return the root of the work tree that contains ``folder``, and the path of ``folder`` in it.

    The path ends with a slash, and is empty for the root itself.  Both are empty without a work
    tree.  Raises the same error as :func:`list_uncommitted`.
    """
    root = _git(folder, "rev-parse", "--show-toplevel") or b""
    prefix = _git(folder, "rev-parse", "--show-prefix") or b""
    return os.fsdecode(root.removesuffix(b"\n")), os.fsdecode(prefix.removesuffix(b"\n"))


def _git(folder: Path, *arguments: str, stdin: bytes = b"") -> bytes | None:
    """Return the output of a git command, or None if git or a work tree is missing."""
    # Imported only to run git, because a first run does not need it.
    import subprocess

    # The folder decides, and not the environment of a hook that runs capsmith.  Looking must not
    # write, download, or start a file system monitor.  Clean filters do run, because git-lfs files
    # would otherwise be reported as changed; only this computer's configuration, which is not
    # cloned, can name one.  A bare repository in a folder could be part of a clone.
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("GIT_")
    } | _SETTINGS
    options = ("-c", "core.fsmonitor=false", "-c", "safe.bareRepository=explicit")
    command = ["git", *options, *arguments]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            input=stdin,
            capture_output=True,
            timeout=_TIMEOUT,
        )
    except FileNotFoundError:
        return None
    except (OSError, subprocess.SubprocessError) as error:
        raise _silent(folder, str(error)) from error
    if done.returncode == 0 or (arguments[0], done.returncode) == ("check-ignore", _NONE_IGNORED):
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
