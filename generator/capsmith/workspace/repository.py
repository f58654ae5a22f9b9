"""A provider repository on disk: read its files and apply changes.

Invariants: nothing outside the folder is touched, no symlink is followed, and an interrupted run
leaves the old tree, the new tree, or a pending change that the next run completes.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from pathlib import Path

from capsmith.errors import CapsmithError, Refused, UnreadableInput
from capsmith.tree import digest
from capsmith.workspace.files import (
    MAX_BYTES,
    digest_file,
    make_refusal,
    read_permissions,
    resolve_inside,
    write_all,
)
from capsmith.workspace.hold import convert_disk_errors, hold_folder, is_abandoned
from capsmith.workspace.journal import Change, Journal, Write

__all__ = ["Change", "Repository"]


class Repository:
    """Reads a provider's repository folder, locks it, and applies changes to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._new = not os.path.lexists(folder)
        self._journal = Journal(folder)
        self._read: dict[str, str] = {}

    @contextlib.contextmanager
    def hold(self, *, writes: bool = True) -> Iterator[None]:
        """Return a context manager that locks the folder. Runs that do not write can share it.

        A folder that did not exist on entry counts as new until a change is applied.  Raises
        Refused if another run has the lock, UnreadableInput if the path is not a folder, and
        DiskError for any OSError inside the context.
        """
        # Remembered and not checked again: another process may create the folder while this run
        # renders, and then the final rename must fail instead of mixing two trees.
        self._new = not os.path.lexists(self.folder)
        self._read.clear()
        with convert_disk_errors(self.folder), hold_folder(self.folder, writes=writes):
            if not self._new and not self.folder.is_dir():
                raise UnreadableInput(
                    "output-not-a-folder",
                    "this is not a folder",
                    file=str(self.folder),
                    hint="Specify a folder, or a path that does not exist yet.",
                )
            yield

    def list_names(self) -> tuple[str, ...]:
        """Return the sorted names of all top-level entries in the folder; empty if it is new."""
        if self._new:
            return ()
        return tuple(sorted(entry.name for entry in self.folder.iterdir()))

    def read_folder(self, path: str, ends: tuple[str, ...]) -> dict[str, bytes]:
        """Return the contents of the regular files in a folder whose names have one of the ends.

        ``path`` is empty for the repository itself.  The files are sorted by path.  Used for the
        author's own files, whose names may contain any character.  Unreadable and large files count
        as empty, and so does a folder behind a symlink.
        """
        with contextlib.suppress(Refused):
            place = resolve_inside(self.folder, path) if path else self.folder
            if not self._new and place.is_dir():
                entries = sorted(each for each in place.iterdir() if each.name.endswith(ends))
                # Uses lstat, so that no link is followed and no pipe is opened.
                statuses = [(each, each.lstat()) for each in entries]
                return {
                    f"{path}/{each.name}".lstrip("/"): _read_moderate(each, status.st_size)
                    for each, status in statuses
                    if stat.S_ISREG(status.st_mode)
                }
        return {}

    def read_text(self, path: str) -> str | None:
        """Return a file's content as a string, or None if the file does not exist.

        Raises the same errors as :meth:`read_bytes`, and UnreadableInput (``file-not-text``) for
        invalid UTF-8.
        """
        content = self.read_bytes(path)
        try:
            return content.decode() if content is not None else None
        except UnicodeDecodeError as error:
            raise UnreadableInput(
                "file-not-text",
                "this file is not UTF-8 text",
                file=path,
                hint="Restore the file from version control.",
            ) from error

    def read_bytes(self, path: str) -> bytes | None:
        """Return a file's content, or None if the file does not exist.

        Raises Refused for a path through a symlink and for anything other than a regular file,
        because reading a pipe would block, and UnreadableInput (``file-too-large``) for more than
        ``MAX_BYTES``.
        """
        target = resolve_inside(self.folder, path)
        if self._new or not os.path.lexists(target):
            self._read.setdefault(path, "")
            return None
        status = target.lstat()
        if not stat.S_ISREG(status.st_mode):
            raise make_refusal(path, "this is not a regular file")
        if status.st_size > MAX_BYTES:
            raise UnreadableInput(
                "file-too-large",
                f"more than {MAX_BYTES} bytes",
                file=path,
                hint="Move it away, or restore the file from version control.",
            )
        content = target.read_bytes()
        # The first reading counts, because content derived from it must not replace a later
        # version.
        self._read.setdefault(path, digest(content))
        return content

    def watch(self, path: str) -> None:
        """Make :meth:`apply` refuse to replace a file that is saved after this call.

        Needed only for files that were read elsewhere. Files that this class reads are watched as
        soon as they are first read.
        """
        with contextlib.suppress(Refused):  # another reader reports it better
            self._read.setdefault(path, digest_file(resolve_inside(self.folder, path)))

    def read_existing(self, paths: Iterable[str], theirs: Container[str] = ()) -> dict[str, bytes]:
        """Return the contents of the given files, by path, leaving out files that do not exist.

        ``theirs`` are the author's files.  Only their existence matters, so symlinks, large files
        and unreadable files among them count as empty.  For other paths, raises the first error of
        :meth:`read_bytes`, with those of all other paths.
        """
        found: dict[str, bytes] = {}
        errors: list[CapsmithError] = []
        for path in sorted(paths):
            try:
                content = self.read_bytes(path)
            except CapsmithError as error:
                if path not in theirs:
                    errors.append(error)
                content = b""
            except PermissionError:
                if path not in theirs:
                    raise
                content = b""
            if content is not None:
                found[path] = content
        if errors:
            first, *others = errors
            first.others = tuple(each.finding for each in others)
            raise first
        return found

    def has_entry(self, path: str) -> bool:
        """Return whether ``path`` exists, as anything."""
        return not self._new and os.path.lexists(resolve_inside(self.folder, path))

    def is_same_entry(self, path: str, other: str) -> bool:
        """Return whether two paths that differ in case only lead to the same directory entry.

        File systems that ignore case, as on macOS, find a file under both names.
        """
        if not self.has_entry(path) or not self.has_entry(other):
            return False
        # Not by inode: hard links share it, and each name has its own in some FUSE file systems.
        folder = self.folder
        for name, another in zip(path.split("/"), other.split("/"), strict=True):
            if name != another and {name, another} <= _list_folder(folder):
                return False
            folder /= name
        return True

    def read_permissions(self, path: str) -> int:
        """Return a file's permission bits, or 0o644 if the file does not exist."""
        target = resolve_inside(self.folder, path)
        return read_permissions(target) if not self._new and target.is_file() else 0o644

    def apply(self, change: Change) -> None:
        """Apply ``change`` completely.

        If this raises an exception, nothing has changed or a change is pending.  A new folder is
        built under a temporary name and renamed.  In an existing folder the change is recorded
        first, and :meth:`complete_pending` finishes it after an interruption.  The caller must hold
        the repository (:meth:`hold`).

        Raises Refused (``output-saved``) if another program saved a file of the change after it was
        read here: the change would replace content that it does not take into account.
        """
        # All paths are checked before the first write, so that an invalid one refuses the whole
        # change.
        for path in (*change.writes, *change.removals, *change.renames):
            resolve_inside(self.folder, path)
        if not change:
            return
        if self._new:
            self._build(change.writes)
            self._new = False
            return
        # Not recorded in the journal: both names lead to the file, before and after.
        for former, path in change.renames.items():
            (self.folder / former).rename(resolve_inside(self.folder, path))
        self._journal.stage(change, self._read)
        self._read.clear()  # what is read from now on is the new state
        self._journal.complete(is_resumed=False)

    @property
    def is_interrupted(self) -> bool:
        """Return whether a change was interrupted and is still pending."""
        return not self._new and self._journal.is_pending

    @property
    def is_undoing(self) -> bool:
        """Return whether the pending change is being undone and therefore cannot be completed."""
        return self.is_interrupted and self._journal.is_undoing

    def complete_pending(self) -> bool:
        """Complete an interrupted change, and return whether there was one.

        Raises Refused, before anything is written, if a file was edited since then, and
        UnreadableInput for an invalid record or missing staged files.
        """
        return self._settle(self._journal.complete)

    def undo_pending(self) -> bool:
        """Undo an interrupted change, and return whether there was one.

        Raises the same errors as :meth:`complete_pending`.
        """
        return self._settle(self._journal.undo)

    def _settle(self, how: Callable[[], None]) -> bool:
        if self._new:
            return False
        pending = self._journal.is_pending
        if pending:
            how()
        else:
            # Leftovers of a run that was interrupted before its list was written; nothing had
            # changed.
            self._journal.clear()
        return pending

    def _build(self, writes: Mapping[str, Write]) -> None:
        # Next to the target and not in /tmp, because only a rename within a file system is atomic.
        parent, prefix = self.folder.parent, f".{self.folder.name}.capsmith-building-"
        parent.mkdir(parents=True, exist_ok=True)
        # The whole name is compared: `.acme.capsmith-backup` beside `acme` is the author's.
        own = re.compile(re.escape(prefix) + "[0-9]+")
        for entry in list(parent.iterdir()):
            # Left by a killed run.  A run that is still working there holds its folder.  The names
            # end in a process id, but testing that would be wrong after a reboot or in a container.
            if own.fullmatch(entry.name) and entry.is_dir() and is_abandoned(entry):
                shutil.rmtree(entry, ignore_errors=True)
        building = parent / f"{prefix}{os.getpid()}"
        building.mkdir()
        try:
            with hold_folder(building):
                write_all(
                    (building / path, file.content, 0o644 if file.mode is None else file.mode)
                    for path, file in writes.items()
                )
                # A rename onto an empty folder succeeds, which is harmless; a rename onto a folder
                # with files fails.
                os.replace(building, self.folder)
        except OSError as error:
            # A rename onto a folder with files fails, so files of another process are safe.
            if not os.path.lexists(self.folder):
                raise
            raise Refused(
                "output-busy",
                "another process created the folder meanwhile",
                file=str(self.folder),
                hint="Find out who created it, and run this again.",
            ) from error
        finally:
            shutil.rmtree(building, ignore_errors=True)


def _list_folder(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir()}


def _read_moderate(file: Path, size: int) -> bytes:
    try:
        return file.read_bytes() if size <= MAX_BYTES else b""
    except PermissionError:
        return b""
