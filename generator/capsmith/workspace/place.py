"""Where the files of a repository are: inside its folder, through no symlink, and not git's."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

from capsmith.errors import Refused
from capsmith.safetext import RelativePath
from capsmith.tree import digest

_AT_ONCE = 8
"""Files that are on their way to the disk at a time."""


def reached(folder: Path, path: str) -> Path:
    """Return the file ``path`` of the repository in ``folder``, whether it is there or not.

    Raises Refused when the way to it, or itself, is a symlink, when something on the way is no
    folder, and for what belongs to git.
    """
    if ".git" in path.lower().split("/"):
        raise refusal(path, "it belongs to git")
    *parents, name = path.split("/")
    place = folder
    for parent in parents:
        place = place / parent
        kind = _kind(place)
        if kind is None:  # A missing folder has nothing below it.
            return folder / path
        if stat.S_ISLNK(kind):
            raise refusal(path, f"{parent} on the way to it is a symlink")
        if not stat.S_ISDIR(kind):
            raise refusal(path, f"{parent} on the way to it is no folder")
    kind = _kind(place / name)
    if kind is not None and stat.S_ISLNK(kind):
        raise refusal(path, "it is a symlink")
    return folder / path


def _kind(place: Path) -> int | None:
    try:
        return place.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def contained(folder: Path, path: str) -> Path:
    """As :func:`reached`; raises ValueError for what is no path below ``folder``."""
    return reached(folder, RelativePath(path))


def refusal(path: str, why: str) -> Refused:
    """Return the refusal to touch ``path``."""
    return Refused(
        "output-not-regular",
        why,
        file=path,
        hint="Move it away; capsmith writes regular files only.",
    )


def remove_empty_parents(folder: Path, target: Path) -> None:
    """Remove the folders between ``folder`` and ``target`` that are now empty."""
    for parent in target.parents:
        if parent == folder:
            return
        if parent.is_dir():  # else an earlier try has removed it
            if any(parent.iterdir()):
                return
            parent.rmdir()


def state(file: Path) -> str:
    """Return the digest of a file; empty when there is none."""
    return digest(file.read_bytes()) if file.is_file() else ""


def mode(file: Path) -> int:
    """Return the permissions of a file."""
    return stat.S_IMODE(file.stat().st_mode) & 0o777


def write(target: Path, content: bytes, permissions: int) -> None:
    """Write a file durably, with exactly these permissions; its folder is there."""
    with target.open("wb") as file:
        file.write(content)
        file.flush()
        target.chmod(permissions)
        os.fsync(file.fileno())


def write_all(files: Iterable[tuple[Path, bytes, int]]) -> None:
    """Write files as :func:`write` does, several at a time, and make their folders.

    When this returns, the content of every file is on the disk, so a rename or a list that comes
    after it never refers to a file that a loss of power would leave empty.  The files themselves
    may arrive in any order: before it returns, nothing may refer to them.  Raises what the first
    failed write raised, after all other writes have ended.
    """
    # A file system commits what is synced at the same time as one; in sequence, each file would
    # wait for a commit of its own.  Threads do that wherever there is fsync.
    waiting = list(files)
    for folder in dict.fromkeys(target.parent for target, _, _ in waiting):
        folder.mkdir(parents=True, exist_ok=True)
    failures: list[BaseException] = []
    shares = [waiting[start::_AT_ONCE] for start in range(min(_AT_ONCE, len(waiting)))]
    threads = [threading.Thread(target=_write_share, args=(each, failures)) for each in shares]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    except BaseException as error:
        failures.append(error)  # the others stop after the file that they are at
    for thread in threads:
        if thread.ident is not None:
            thread.join()
    if failures:
        raise failures[0]


def _write_share(files: Sequence[tuple[Path, bytes, int]], failures: list[BaseException]) -> None:
    try:
        for target, content, permissions in files:
            if failures:
                return
            write(target, content, permissions)
    except BaseException as error:
        failures.append(error)


def replace(target: Path, content: bytes) -> None:
    """Write a file atomically: at any moment it has the old or the new content."""
    temporary = target.with_name(unfinished(target.name))
    temporary.parent.mkdir(parents=True, exist_ok=True)
    write(temporary, content, 0o644)
    os.replace(temporary, target)


def unfinished(name: str) -> str:
    """Return what a file is called while :func:`replace` writes it."""
    return name + ".new"
