"""A provider repository on disk: what is in it, and how decisions are applied to it.

Invariants: nothing outside the folder is touched, no symlink is followed, and a run that is
interrupted leaves the old tree, the new tree, or a staged change that the next run completes.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from capsmith.errors import Refused, UnreadableInput
from capsmith.safetext import RelativePath

STATE_FOLDER = ".capsmith"
_STAGE = f"{STATE_FOLDER}/stage"
_PENDING = f"{STATE_FOLDER}/pending.json"


class Change:
    """A set of writes and removals that takes effect as one."""

    def __init__(self) -> None:
        self.writes: dict[str, tuple[bytes, bool]] = {}
        self.removals: set[str] = set()

    def write(self, path: str, text: str, executable: bool = False) -> None:
        """Write ``text`` (UTF-8) to ``path``."""
        self.writes[str(RelativePath(path))] = (text.encode(), executable)

    def remove(self, path: str) -> None:
        """Remove ``path``."""
        self.removals.add(str(RelativePath(path)))

    def __bool__(self) -> bool:
        return bool(self.writes or self.removals)


class Repository:
    """The folder of one provider."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def is_new(self) -> bool:
        """Whether there is nothing in the folder, or no folder."""
        return not self.folder.exists() or (self.folder.is_dir() and not any(self.folder.iterdir()))

    def names(self) -> tuple[str, ...]:
        """What lies in the folder itself, sorted; empty when there is no folder.

        Raises UnreadableInput when the folder is a file, or a symlink to nowhere.
        """
        if not self.folder.exists() and not self.folder.is_symlink():
            return ()
        if not self.folder.is_dir():
            raise UnreadableInput(
                "output-not-a-folder",
                "this is not a folder",
                file=str(self.folder),
                hint="Name a folder, or one that does not exist yet.",
            )
        return tuple(sorted(entry.name for entry in self.folder.iterdir()))

    def read(self, path: str) -> str | None:
        """The text of a file, None when it is not there.

        Raises Refused for anything but a regular file that is reached without symlinks;
        UnreadableInput when it is not UTF-8.
        """
        target = self._contained(path)
        if not os.path.lexists(target):
            return None
        if not stat.S_ISREG(target.lstat().st_mode):
            raise self._refusal(path, "this is not a regular file")
        try:
            return target.read_bytes().decode()
        except UnicodeDecodeError as error:
            raise UnreadableInput(
                "file-not-text",
                "this file is not UTF-8 text",
                file=path,
                hint="Restore the file from version control.",
            ) from error

    def read_all(self, paths: Iterable[str]) -> dict[str, str]:
        """The text of those of ``paths`` that exist."""
        texts = ((path, self.read(path)) for path in paths)
        return {path: text for path, text in texts if text is not None}

    def apply(self, change: Change) -> None:
        """Make ``change``.

        A new folder is built beside its place and renamed into it.  In an existing one the files
        are staged first, then a list of what is pending is written, and only then are they moved
        into place; :meth:`complete_pending` finishes an interrupted move.
        """
        for path in (*change.writes, *change.removals):
            self._contained(path)
        if not change:
            return
        if self.is_new() and not change.removals:
            self._build(change.writes)
            return
        stage = self.folder / _STAGE
        shutil.rmtree(stage, ignore_errors=True)
        for path, (content, executable) in change.writes.items():
            _write(stage / path, content, executable)
        pending = {"writes": list(change.writes), "removals": sorted(change.removals)}
        _write_durably(self.folder / _PENDING, json.dumps(pending).encode())
        self.complete_pending()

    def complete_pending(self) -> bool:
        """Finish a change whose run was interrupted; whether there was one."""
        pending = self._contained(_PENDING)
        if not pending.is_file():
            shutil.rmtree(self.folder / _STAGE, ignore_errors=True)
            return False
        change = json.loads(pending.read_bytes())
        for path in change["writes"]:
            staged = self._contained(f"{_STAGE}/{RelativePath(path)}")
            if staged.is_file():  # else an earlier try has moved it
                target = self._contained(path)
                target.parent.mkdir(parents=True, exist_ok=True)
                os.replace(staged, target)
        for path in change["removals"]:
            target = self._contained(path)
            target.unlink(missing_ok=True)
            self._remove_empty_parents(target)
        pending.unlink()
        shutil.rmtree(self.folder / _STAGE, ignore_errors=True)
        return True

    def _build(self, writes: Mapping[str, tuple[bytes, bool]]) -> None:
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        building = self.folder.parent / f".{self.folder.name}.capsmith-{os.getpid()}"
        shutil.rmtree(building, ignore_errors=True)
        try:
            for path, (content, executable) in writes.items():
                _write(building / path, content, executable)
            os.replace(building, self.folder)
        finally:
            shutil.rmtree(building, ignore_errors=True)

    def _contained(self, path: str) -> Path:
        relative = RelativePath(path)
        target = self.folder
        for part in relative.split("/"):
            if target != self.folder and target.is_symlink():
                raise self._refusal(path, f"{target.name} on the way to it is a symlink")
            target = target / part
        if target.is_symlink():
            raise self._refusal(path, "it is a symlink")
        return target

    def _remove_empty_parents(self, target: Path) -> None:
        for parent in target.parents:
            if parent == self.folder or any(parent.iterdir()):
                return
            parent.rmdir()

    def _refusal(self, path: str, why: str) -> Refused:
        return Refused(
            "output-not-regular",
            why,
            file=path,
            hint="capsmith writes regular files only; move this away.",
        )


def _write(target: Path, content: bytes, executable: bool) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    target.chmod(0o755 if executable else 0o644)


def _write_durably(target: Path, content: bytes) -> None:
    temporary = target.with_name(target.name + ".new")
    target.parent.mkdir(parents=True, exist_ok=True)
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, target)
