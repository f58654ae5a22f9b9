"""Where the files of a repository are: inside its folder, through no symlink, and not git's."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from capsmith.errors import Refused
from capsmith.safetext import RelativePath
from capsmith.tree import digest


def reached(folder: Path, path: str) -> Path:
    """The file ``path`` of the repository in ``folder``, whether it is there or not.

    Raises Refused when the way to it, or itself, is a symlink, when something on the way is no
    folder, and for what belongs to git.
    """
    *parents, name = path.split("/")
    if ".git" in path.lower().split("/"):
        raise refusal(path, "it belongs to git")
    target = folder
    for parent in parents:
        target = target / parent
        if target.is_symlink():
            raise refusal(path, f"{target.name} on the way to it is a symlink")
        if target.exists() and not target.is_dir():
            raise refusal(path, f"{target.name} on the way to it is no folder")
    target = target / name
    if target.is_symlink():
        raise refusal(path, "it is a symlink")
    return target


def contained(folder: Path, path: str) -> Path:
    """As :func:`reached`; raises ValueError for what is no path below ``folder``."""
    return reached(folder, RelativePath(path))


def refusal(path: str, why: str) -> Refused:
    """The refusal to touch ``path``."""
    return Refused(
        "output-not-regular",
        why,
        file=path,
        hint="capsmith writes regular files only; move this away.",
    )


def remove_empty_parents(folder: Path, target: Path) -> None:
    """Remove the folders between ``folder`` and ``target`` that hold nothing any more."""
    for parent in target.parents:
        if parent == folder:
            return
        if parent.is_dir():  # else an earlier try has removed it
            if any(parent.iterdir()):
                return
            parent.rmdir()


def state(file: Path) -> str:
    """The digest of a file; empty when there is none."""
    return digest(file.read_bytes()) if file.is_file() else ""


def mode(file: Path) -> int:
    """The permissions of a file."""
    return stat.S_IMODE(file.stat().st_mode) & 0o777


def write(target: Path, content: bytes, permissions: int) -> None:
    """Write a file durably, with exactly these permissions."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    target.chmod(permissions)


def replace(target: Path, content: bytes) -> None:
    """Write a file so that it is there as it was or as it shall be, at any moment."""
    temporary = target.with_name(unfinished(target.name))
    write(temporary, content, 0o644)
    os.replace(temporary, target)


def unfinished(name: str) -> str:
    """What a file is called while :func:`replace` writes it."""
    return name + ".new"
