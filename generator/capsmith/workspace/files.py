"""Paths of files in a repository: inside its folder, through no symlink, and not in .git."""

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
"""Number of files that are written at a time."""


def resolve_without_symlinks(folder: Path, path: str) -> Path:
    """Return the file ``path`` of the repository in ``folder``, whether it exists or not.

    Raises Refused when the file or a folder on its path is a symlink, when a parent is not a
    folder, and for a path in ``.git``.
    """
    if ".git" in path.lower().split("/"):
        raise make_refusal(path, "the path belongs to git")
    *parents, name = path.split("/")
    place = folder
    for parent in parents:
        place = place / parent
        kind = _kind(place)
        if kind is None:  # A missing folder has nothing below it.
            return folder / path
        if stat.S_ISLNK(kind):
            raise make_refusal(path, f"the parent {parent} is a symlink")
        if not stat.S_ISDIR(kind):
            raise make_refusal(path, f"the parent {parent} is not a folder")
    kind = _kind(place / name)
    if kind is not None and stat.S_ISLNK(kind):
        raise make_refusal(path, "this is a symlink")
    return folder / path


def _kind(place: Path) -> int | None:
    try:
        return place.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def resolve_inside(folder: Path, path: str) -> Path:
    """Return the file ``path`` of the repository, as :func:`resolve_without_symlinks` does.

    Raises ValueError, too, for a path that leaves the folder, such as ``../x``, or is too long.
    """
    return resolve_without_symlinks(folder, RelativePath(path))


def make_refusal(path: str, why: str) -> Refused:
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


def digest_file(file: Path) -> str:
    """Return the digest of a file; empty when there is none."""
    return digest(file.read_bytes()) if file.is_file() else ""


def read_permissions(file: Path) -> int:
    """Return the permissions of a file."""
    return stat.S_IMODE(file.stat().st_mode) & 0o777


def write_synced(target: Path, content: bytes, permissions: int) -> None:
    """Write and sync a file in a folder that exists, with exactly these permissions."""
    with target.open("wb") as file:
        file.write(content)
        file.flush()
        target.chmod(permissions)
        os.fsync(file.fileno())


def write_all(files: Iterable[tuple[Path, bytes, int]]) -> None:
    """Write files as :func:`write_synced` does, several at a time, and make their folders.

    On return, the content of every file is on the disk, so a later rename never refers to a file
    that a power loss would leave empty.  The files may be written in any order: until this
    returns, nothing may refer to them.  Raises the error of the first failed write, after all
    other writes have ended.
    """
    # A file system commits files that are synced at the same time in one commit; one after the
    # other, each file would wait for its own commit.
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
            write_synced(target, content, permissions)
    except BaseException as error:
        failures.append(error)


def replace_file(target: Path, content: bytes) -> None:
    """Write a file atomically: at any moment it has the old or the new content."""
    temporary = target.with_name(name_temporary(target.name))
    temporary.parent.mkdir(parents=True, exist_ok=True)
    write_synced(temporary, content, 0o644)
    os.replace(temporary, target)


def create_file(target: Path, content: bytes) -> None:
    """Write a file that is not there yet, whole or not at all; raise FileExistsError if it is."""
    # Imported when it is used: most commands do without.
    import tempfile

    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}-", dir=target.parent)
    os.close(descriptor)
    try:
        write_synced(Path(name), content, 0o644)
        os.link(name, target)  # A rename would replace what has been written meanwhile.
    finally:
        os.unlink(name)


def name_temporary(name: str) -> str:
    """Return the name of a file while :func:`replace_file` writes it."""
    return name + ".new"
