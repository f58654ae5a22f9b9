"""Apply a change to a folder completely or not at all, even if the run is interrupted.

The new and the current files are staged first, then a list of them is written, then files are
moved.  While the list exists, this run or a later one can complete or undo the change, any number
of times; without the list nothing has changed.

Each step starts when the previous one is on disk: all staged files are synced, then the list is
synced and renamed, then files are moved.  After a kill or a power failure, the list therefore never
names a file whose content is missing.

States of a folder, according to the list ``.capsmith/pending.json``:

- no list: the old tree, perhaps with leftovers in the stage, which :meth:`Journal.clear` removes;
- a list: each of its files is in its old or its new state, and both contents can be restored, from
  the folder or from the stage.  Completing moves all of them to the new state, undoing to the old;
- a list with ``undo``: the same, but only undoing is possible, as new files may already be gone.

The list holds digests, which show for each file how far an attempt came and whether the author has
edited it since.  An edited file stops everything: neither content may be lost.  A file that is
saved while files are moved stops it too: all others get their former contents again.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple, NoReturn

from capsmith.errors import Refused, UnreadableInput
from capsmith.safetext import RelativePath
from capsmith.workspace.files import (
    MAX_BYTES,
    digest_file,
    hold_parents,
    keep_attributes,
    make_refusal,
    read_permissions,
    remove_empty_parents,
    remove_unchanged,
    replace_unchanged,
    resolve_inside,
    resolve_without_symlinks,
    write_all,
    write_synced,
)


class Write(NamedTuple):
    """A file's new content and permissions. None keeps an existing file's permissions."""

    content: bytes
    mode: int | None
    is_exact: bool = False
    """Whether an existing file gets exactly this mode, or is only made executable or not."""


class Change:
    """Files to write and to remove, in one step that succeeds or fails as a whole."""

    def __init__(self) -> None:
        self.writes: dict[str, Write] = {}
        self.removals: set[str] = set()
        self.renames: dict[str, str] = {}
        """New paths that differ from the former ones in case only, where case is ignored."""

    def write(
        self, path: str, content: str | bytes, executable: bool | None = False, mode: int = 0
    ) -> None:
        """Add ``content`` to the change, to be written to ``path``; a string is encoded as UTF-8.

        If ``mode`` is not 0, it sets the permissions.  Otherwise ``executable`` does: None keeps
        the permissions of an existing file.
        """
        data = content.encode() if isinstance(content, str) else content
        usual = None if executable is None else 0o755 if executable else 0o644
        self.writes[str(RelativePath(path))] = Write(data, mode or usual, bool(mode))

    def remove(self, path: str) -> None:
        """Add the removal of ``path`` to the change."""
        self.removals.add(str(RelativePath(path)))

    def rename(self, former: str, path: str) -> None:
        """Add a new name of a file to the change, which differs in case only.

        See :meth:`Repository.is_same_entry`.
        """
        self.renames[str(RelativePath(former))] = str(RelativePath(path))

    def __bool__(self) -> bool:
        return bool(self.writes or self.removals or self.renames)


STATE_FOLDER = ".capsmith"
_STAGE = f"{STATE_FOLDER}/stage"
_PENDING = f"{STATE_FOLDER}/pending.json"
_NOTED = f"{_PENDING}.new"
"""The list while it is written: one name, so that the next run finds what a killed one left."""


@dataclass(frozen=True, slots=True)
class _Pending:
    """Digests by path: of each file before and after the change, empty if there is no file.

    Both mappings have the same paths.
    """

    before: Mapping[str, str]
    after: Mapping[str, str]
    undo: bool = False
    """Whether undoing the change has begun, so that it can no longer be completed."""


class Journal:
    """A folder's pending change, if there is one.

    The caller must hold the folder (:func:`capsmith.workspace.hold.hold_folder`): two processes
    that complete the same change would mistake each other's moves for edits.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def is_pending(self) -> bool:
        """Return whether a change was interrupted and has been neither completed nor undone."""
        return resolve_inside(self._folder, _PENDING).is_file()

    @property
    def is_undoing(self) -> bool:
        """Return whether the pending change is being undone.

        Raises UnreadableInput if the list is invalid.
        """
        return self._load().undo

    def stage(self, change: Change, read: Mapping[str, str] | None = None) -> None:
        """Stage ``change`` for :meth:`complete` or :meth:`undo`.

        ``read`` maps the paths of the files that the change was derived from to their contents'
        digests, which are empty for files that did not exist.  Raises Refused (``output-saved``) if
        one of the files has been saved since then.  There must be no pending change.  If an
        exception is raised, nothing has changed.
        """
        # What cannot be removed could be a pipe, or another name of a file elsewhere, and writing
        # would open it.
        if os.path.lexists(self._discard_stage()):
            raise make_refusal(_STAGE, "this cannot be removed")
        try:
            write_all(self._staged(path, file) for path, file in change.writes.items())
            self._keep_attributes(change.writes, self._new)
            paths = sorted({*change.writes, *change.removals})
            # Read from disk, not from memory: content that was not written as intended must not be
            # moved.
            after = {path: digest_file(self._new(path)) for path in paths}
            before = {path: digest_file(resolve_inside(self._folder, path)) for path in paths}
            for path in paths:
                if (read or {}).get(path, before[path]) != before[path]:
                    raise _saved(path)
            # Copies, not moves, because the files must stay in place until the list is written.
            write_all(self._kept(path) for path in _written(before))
            self._keep_attributes(_written(before), self._old)
            for path in _written(before):
                if digest_file(self._old(path)) != before[path]:  # saved while it was copied
                    raise _saved(path)
            # With the list, a later run can complete or undo the change; without it, nothing has
            # changed.  So the list is written after every file that it names.
            self._note(_Pending(before, after))
        except BaseException:
            # Also on Ctrl-C, which can come right after the list was renamed into place: then the
            # change is pending and needs its stage.
            if not (self._folder / _PENDING).exists():
                self.clear()
            raise

    def complete(self, *, is_resumed: bool = True) -> None:
        """Complete the pending change or, if it is being undone, complete the undo.

        Raises Refused if a file has been edited since then: before anything is moved
        (``output-edited``), or after all other files have their former contents again
        (``output-saved``).  If this run has staged the change (not ``is_resumed``), it is always
        undone in this case.  Raises UnreadableInput for an invalid list or damaged staged files.
        """
        pending = self._load()
        if pending.undo:
            self._undo(pending)
            return
        # All files are checked before the first one is moved.
        edited = self._find_edited(pending)
        if edited and is_resumed:
            raise _edited(edited)
        if edited:
            self._undo_others(pending, edited)
        # Removals come last, so that a file that moves to another path exists at both for a moment,
        # but never at neither.
        for path in (*_written(pending.after), *_absent(pending.after)):
            if not self._move(path, pending.before[path], pending.after[path]):
                self._undo_others(pending, path)
        self._conclude()

    def undo(self) -> None:
        """Restore the state before the pending change.

        Raises the same errors as :meth:`complete`.
        """
        pending = self._load()
        if not pending.undo:
            self._check_undoable(pending)
            # Recorded first, because an interrupted undo must not be completed as a change.
            self._note(_Pending(pending.before, pending.after, undo=True))
        self._undo(pending)

    def clear(self) -> None:
        """Remove staged files that do not belong to a pending change."""
        stage = self._discard_stage()
        resolve_inside(self._folder, _NOTED).unlink(missing_ok=True)
        remove_empty_parents(self._folder, stage)

    def _discard_stage(self) -> Path:
        """Remove the staging folder.

        Raises Refused if it is not a folder: opening a pipe would block.
        """
        stage = resolve_inside(self._folder, _STAGE)
        if os.path.lexists(stage) and not stage.is_dir():
            raise make_refusal(_STAGE, "this is not a folder")
        shutil.rmtree(stage, ignore_errors=True)
        return stage

    def _undo(self, pending: _Pending) -> None:
        self._check_undoable(pending)
        for path in (*_written(pending.before), *_absent(pending.before)):
            before, after = pending.before[path], pending.after[path]
            if before:
                is_restored = self._place(self._old(path), path, after, before)
            else:
                is_restored = self._remove(path, after)
            if not is_restored:
                raise _edited(path)
        self._conclude()

    def _undo_others(self, pending: _Pending, saved: str) -> NoReturn:
        """Undo a change except for a file that was saved meanwhile, and raise Refused."""
        # The file now belongs to the author, so it leaves the list: otherwise undoing would find it
        # again.
        before, after = (
            {path: state for path, state in states.items() if path != saved}
            for states in (pending.before, pending.after)
        )
        rest = _Pending(before, after, undo=True)
        self._note(rest)
        self._undo(rest)
        raise _saved(saved)

    def _move(self, path: str, before: str, after: str) -> bool:
        """Bring a file from the digest ``before`` to the digest ``after``.

        Returns False if the file was saved since it was compared.
        """
        if not after:
            return self._remove(path, before)
        staged = self._new(path)
        # An earlier attempt has moved the file, or exchanged it for its former content.
        if not staged.is_file() or (before != after and digest_file(staged) == before):
            return True
        return self._place(staged, path, before, after)

    def _place(self, source: Path, path: str, expected: str, content: str) -> bool:
        """Give a file the content and permissions of ``source``.

        ``source`` may no longer exist afterwards.  Returns False if the file's content differs from
        ``expected``.
        """
        with hold_parents(self._folder, path) as target:
            if digest_file(target) != content:
                return replace_unchanged(source, target, expected)
            # After an exchange by an earlier attempt, it would be the other content with its
            # permissions.
            if digest_file(source) == content:
                permissions = read_permissions(source)
                if permissions != read_permissions(target):  # only its owner may change them
                    target.chmod(permissions)
            return True

    def _conclude(self) -> None:
        # The list is removed before the stage.  A kill in between leaves files that nothing refers
        # to; in the other order it would leave a list that refers to missing files.
        (self._folder / _PENDING).unlink()
        self.clear()

    def _remove(self, path: str, expected: str) -> bool:
        aside = resolve_without_symlinks(self._folder, f"{_STAGE}/gone/{RelativePath(path)}")
        if os.path.lexists(resolve_inside(self._folder, path)):
            with hold_parents(self._folder, path) as target:
                if not remove_unchanged(target, aside, expected):
                    return False
        remove_empty_parents(self._folder, resolve_inside(self._folder, path))
        return True

    def _find_edited(self, pending: _Pending) -> str:
        """Return a file that was edited before it got its new state; empty if there is none."""
        for path, after in pending.after.items():
            before = pending.before[path]
            staged, there = digest_file(self._new(path)), digest_file(
                resolve_inside(self._folder, path)
            )
            # An earlier attempt has moved the staged file, or exchanged it for the former content.
            # The file need not match `after`, because the author may have edited it since then,
            # which loses nothing.
            if after and staged in ("", before) and staged != after and there != before:
                continue
            if staged != after:
                raise _damaged(path)
            # A missing file has no edits to lose.
            if there not in ("", before, after):
                return path
        return ""

    def _check_undoable(self, pending: _Pending) -> None:
        for path, before in pending.before.items():
            there = digest_file(resolve_inside(self._folder, path))
            # If a file is neither old nor new, the author edited it, and undoing would lose the
            # edit.
            if there not in ("", before, pending.after[path]):
                raise _edited(path)
            if there != before and before != digest_file(self._old(path)):
                raise _damaged(path)

    def _note(self, pending: _Pending) -> None:
        written = self._folder / _NOTED
        written.parent.mkdir(parents=True, exist_ok=True)
        # Synced before the rename: otherwise the list could be empty after a power failure.
        write_synced(written, json.dumps(asdict(pending)).encode(), 0o644)
        os.replace(written, self._folder / _PENDING)

    def _load(self) -> _Pending:
        file = resolve_inside(self._folder, _PENDING)
        try:
            if file.stat().st_size > MAX_BYTES:
                raise ValueError("the list is too long")
            document = json.loads(file.read_bytes())
            # The list comes from the repository, which may be anyone's, so its paths are validated
            # like input.
            before, after = (_states(document[key]) for key in ("before", "after"))
            if before.keys() != after.keys():
                raise ValueError("each file must have a state before and a state after")
            return _Pending(before, after, document["undo"] is True)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise UnreadableInput(
                "pending-unreadable",
                "this is not a list of pending changes that capsmith wrote",
                file=str(file),
                hint="Remove the file, and restore the folder from version control.",
            ) from error

    def _staged(self, path: str, file: Write) -> tuple[Path, bytes, int]:
        there = resolve_inside(self._folder, path)
        kept = read_permissions(there) if there.is_file() else 0o644
        if file.mode is None or file.is_exact:
            return self._new(path), file.content, kept if file.mode is None else file.mode
        # A file that a group may write stays so.  As in git, all who can read it may execute it.
        shared = kept & 0o666
        executable = (shared & 0o444) >> 2 if file.mode & 0o111 else 0
        return self._new(path), file.content, shared | executable

    def _kept(self, path: str) -> tuple[Path, bytes, int]:
        there = resolve_inside(self._folder, path)
        return self._old(path), there.read_bytes(), read_permissions(there)

    def _keep_attributes(self, paths: Iterable[str], copy: Callable[[str], Path]) -> None:
        """Give the staged copies of existing files their owner, group and extended attributes."""
        for path in paths:
            there = resolve_inside(self._folder, path)
            if there.is_file():
                keep_attributes(there, copy(path))

    def _new(self, path: str) -> Path:
        return resolve_without_symlinks(self._folder, f"{_STAGE}/new/{RelativePath(path)}")

    def _old(self, path: str) -> Path:
        return resolve_without_symlinks(self._folder, f"{_STAGE}/old/{RelativePath(path)}")


def _edited(path: str) -> Refused:
    return Refused(
        "output-edited",
        "this file was edited after an interrupted run, which must be completed or undone first",
        file=path,
        hint="Move it away, run this again, and bring your edit back.",
    )


def _saved(path: str) -> Refused:
    return Refused(
        "output-saved",
        "this file was saved while capsmith was running; it is kept, and nothing was changed",
        file=path,
        hint="Run the command again.",
    )


def _damaged(path: str) -> UnreadableInput:
    return UnreadableInput(
        "pending-damaged",
        "the files required to complete an interrupted run are missing",
        file=path,
        hint=f"Remove {_PENDING}, and restore the folder from version control.",
    )


def _states(states: Mapping[object, object]) -> dict[str, str]:
    return {str(RelativePath(str(path))): str(digest) for path, digest in states.items()}


def _written(states: Mapping[str, str]) -> Iterable[str]:
    return (path for path, digest in states.items() if digest)


def _absent(states: Mapping[str, str]) -> Iterable[str]:
    return (path for path, digest in states.items() if not digest)
