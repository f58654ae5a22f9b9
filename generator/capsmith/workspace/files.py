"""Files of a repository: paths that cannot leave its folder, and atomic writes.

Paths come from a lock, a journal or an overlay that others may have written, as a repository can be
cloned from anywhere.  No path may therefore lead out of the folder, through a symlink, or into
``.git``, where git would execute a file such as ``hooks/post-checkout``.
"""

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
"""Number of files that are written concurrently."""


def resolve_without_symlinks(folder: Path, path: str) -> Path:
    """Return the location of ``path`` in ``folder``, whether or not the file exists.

    Raises Refused if the file or a parent is a symlink, if a parent is not a folder, and for paths
    in ``.git``.  ``path`` must be relative and without ``..``.

    This is a check, not a lock: a process that can write to the folder could replace a parent with
    a symlink between check and write.  Such a process needs no help from capsmith.
    """
    # Some file systems ignore case: there .GIT is the same folder.
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
    # A broken symlink counts as well: writing through it would create its target.
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
    """Return the location of ``path`` in ``folder``.

    Raises the same errors as :func:`resolve_without_symlinks`, and ValueError for a path that
    leaves the folder, such as ``../x``, or that is too long.
    """
    return resolve_without_symlinks(folder, RelativePath(path))


def make_refusal(path: str, why: str) -> Refused:
    """Return the exception to raise for a path that must not be touched."""
    return Refused(
        "output-not-regular",
        why,
        file=path,
        hint="Move it away; capsmith writes regular files only.",
    )


def remove_empty_parents(folder: Path, target: Path) -> None:
    """Remove the empty folders between ``folder``, which is kept, and ``target``."""
    # The folder itself stays, however empty it is: the author created it.
    for parent in target.parents:
        if parent == folder:
            return
        if parent.is_dir():  # else an earlier try has removed it
            if any(parent.iterdir()):
                return
            parent.rmdir()


def digest_file(file: Path) -> str:
    """Return the digest of a regular file, or an empty string if there is none."""
    return digest(file.read_bytes()) if file.is_file() else ""


def read_permissions(file: Path) -> int:
    """Return the permission bits of an existing file, from 0 to 0o777."""
    return stat.S_IMODE(file.stat().st_mode) & 0o777


def write_synced(target: Path, content: bytes, permissions: int) -> None:
    """Write a file with the given permissions to an existing folder, and sync it.

    On return, the content is on disk.  The name of a new file may still be lost in a power failure,
    because the folder is not synced: rename the file afterwards, or be able to write it again.
    """
    with target.open("wb") as file:
        file.write(content)
        file.flush()
        # Not by os.open: the umask would take permissions away, and a file that is already there
        # would keep its own.
        target.chmod(permissions)
        os.fsync(file.fileno())


def write_all(files: Iterable[tuple[Path, bytes, int]]) -> None:
    """Write files in the same way as :func:`write_synced`, several at a time.

    Missing folders are created.  On return, all contents are on disk, so a later rename never
    refers to a file that a power failure would leave empty.  Files are written in any order: until
    this function returns, nothing may refer to them.  Raises the error of the first failed write,
    after all other writes have ended.
    """
    # A file system commits files that are synced at the same time in one commit; one after the
    # other, each file would wait for its own commit.
    waiting = list(files)
    for folder in dict.fromkeys(target.parent for target, _, _ in waiting):
        folder.mkdir(parents=True, exist_ok=True)
    # Shared by the threads without a lock: appending to a list is atomic, and only the first error
    # and the fact that there is one matter.
    failures: list[BaseException] = []
    shares = [waiting[start::_AT_ONCE] for start in range(min(_AT_ONCE, len(waiting)))]
    # Threads suffice: the time goes into fsync, which releases the interpreter's lock.
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
    """Write a file atomically: at any time it has either the old or the new content.

    Not safe for concurrent calls with the same target, which would share a temporary file.
    """
    # In the same folder, as a rename across file systems would be a copy; synced before the rename,
    # or the new name could lead to an empty file after a power loss.
    temporary = target.with_name(name_temporary(target.name))
    temporary.parent.mkdir(parents=True, exist_ok=True)
    write_synced(temporary, content, 0o644)
    os.replace(temporary, target)


def create_file(target: Path, content: bytes) -> None:
    """Create a file atomically, with its whole content or not at all.

    Raises FileExistsError if ``target`` exists.
    """
    # Imported when it is used: most commands do without.
    import tempfile

    # A name that no other process can guess or have: the folder may be shared, such as /tmp.
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}-", dir=target.parent)
    os.close(descriptor)
    try:
        write_synced(Path(name), content, 0o644)
        # A rename would replace a file that another process has created since; a link fails.
        os.link(name, target)
    finally:
        os.unlink(name)


def name_temporary(name: str) -> str:
    """Return the name of the temporary file that :func:`replace_file` writes."""
    return name + ".new"
