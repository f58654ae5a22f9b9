"""A provider repository on disk: what is in it, and how decisions are applied to it.

Invariants: nothing outside the folder is touched, no symlink is followed, and a run that is
interrupted leaves the old tree, the new tree, or a staged change that the next run completes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import stat
from collections.abc import Container, Iterable, Iterator, Mapping
from pathlib import Path

from capsmith.errors import Refused, UnreadableInput
from capsmith.safetext import RelativePath
from capsmith.workspace.hold import abandoned, held, told

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
        self._new = not os.path.lexists(folder)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keep other runs out.  A folder that is not there yet stays new, whatever others do.

        Raises Refused when another run is at work, and DiskError for what the disk refuses.
        """
        self._new = not os.path.lexists(self.folder)
        with told(self.folder), held(self.folder):
            yield

    def names(self) -> tuple[str, ...]:
        """What lies in the folder itself, sorted; empty when there is no folder.

        Raises UnreadableInput when the folder is a file, or a symlink to nowhere.
        """
        if self._new:
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
        if self._new or not os.path.lexists(target):
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

    def read_all(self, paths: Iterable[str], theirs: Container[str] = ()) -> dict[str, str]:
        """The text of those of ``paths`` that exist.

        Of ``theirs``, the author's own, it only matters that they are there: whatever cannot be
        read as text counts as empty.
        """
        texts: dict[str, str] = {}
        for path in paths:
            try:
                text = self.read(path)
            except (Refused, UnreadableInput, PermissionError):
                if path not in theirs:
                    raise
                text = ""
            if text is not None:
                texts[path] = text
        return texts

    def apply(self, change: Change) -> None:
        """Make ``change``.

        A new folder is built beside its place and renamed into it.  In one that is there the
        files are staged first, then a list of what is pending is written, and only then are they
        moved into place; :meth:`complete_pending` finishes an interrupted move.
        """
        for path in (*change.writes, *change.removals):
            self._contained(path)
        if not change:
            return
        if self._new:
            self._build(change.writes)
            self._new = False
            return
        stage = self.folder / _STAGE
        shutil.rmtree(stage, ignore_errors=True)
        try:
            for path, (content, executable) in change.writes.items():
                _write(stage / path, content, executable)
            pending = {
                "writes": self._states(change.writes),
                "removals": self._states(sorted(change.removals)),
            }
            _write_durably(self.folder / _PENDING, json.dumps(pending).encode())
        except BaseException:
            if not (self.folder / _PENDING).exists():
                shutil.rmtree(stage, ignore_errors=True)
                self._remove_empty_parents(stage)
            raise
        self.complete_pending()

    def complete_pending(self) -> bool:
        """Finish a change whose run was interrupted; whether there was one.

        Raises Refused, before anything is done, when a file was edited since; UnreadableInput
        for a list that capsmith did not write.
        """
        pending = self._contained(_PENDING)
        if self._new:
            return False
        if not pending.is_file():
            shutil.rmtree(self.folder / _STAGE, ignore_errors=True)
            return False
        writes, removals = self._pending(pending)
        self._check_unedited(writes, removals)
        for path in writes:
            staged = self._staged(path)
            if staged.is_file():  # else an earlier try has moved it
                target = self._contained(path)
                target.parent.mkdir(parents=True, exist_ok=True)
                os.replace(staged, target)
        for path in removals:
            target = self._contained(path)
            target.unlink(missing_ok=True)
            self._remove_empty_parents(target)
        pending.unlink()
        shutil.rmtree(self.folder / _STAGE, ignore_errors=True)
        return True

    def _pending(self, file: Path) -> tuple[dict[str, str], dict[str, str]]:
        try:
            change = json.loads(file.read_bytes())
            writes, removals = (
                {str(RelativePath(path)): str(state) for path, state in change[key].items()}
                for key in ("writes", "removals")
            )
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise UnreadableInput(
                "pending-unreadable",
                "this is not a list of pending changes that capsmith wrote",
                file=str(file),
                hint="Remove the file, and restore the folder from version control.",
            ) from error
        return writes, removals

    def _check_unedited(self, writes: Mapping[str, str], removals: Mapping[str, str]) -> None:
        staged = {path: _state(self._staged(path)) for path in writes}
        for path, before in {**writes, **removals}.items():
            if path in staged and not staged[path]:
                continue  # an earlier try has moved it
            if _state(self._contained(path)) not in ("", before, staged.get(path)):
                raise Refused(
                    "output-edited",
                    "this file was edited after a run that was interrupted and is completed now",
                    file=path,
                    hint="Move it away, run this again, and bring your edit back.",
                )

    def _states(self, paths: Iterable[str]) -> dict[str, str]:
        return {path: _state(self._contained(path)) for path in paths}

    def _build(self, writes: Mapping[str, tuple[bytes, bool]]) -> None:
        parent, prefix = self.folder.parent, f".{self.folder.name}.capsmith-"
        parent.mkdir(parents=True, exist_ok=True)
        for entry in list(parent.iterdir()):
            if entry.name.startswith(prefix) and entry.is_dir() and abandoned(entry):
                shutil.rmtree(entry, ignore_errors=True)  # of a run that was killed
        building = parent / f"{prefix}{os.getpid()}"
        building.mkdir()
        try:
            with held(building):
                for path, (content, executable) in writes.items():
                    _write(building / path, content, executable)
                os.replace(building, self.folder)
        except OSError as error:
            if not os.path.lexists(self.folder):
                raise
            raise Refused(
                "output-busy",
                "the folder came into being meanwhile",
                file=str(self.folder),
                hint="Look whose it is, and run this again.",
            ) from error
        finally:
            shutil.rmtree(building, ignore_errors=True)

    def _contained(self, path: str) -> Path:
        """Where ``path`` is: reached through folders of the repository alone, and none of git's."""
        return self._reached(RelativePath(path))

    def _staged(self, path: str) -> Path:
        return self._reached(f"{_STAGE}/{RelativePath(path)}")

    def _reached(self, path: str) -> Path:
        *parents, name = path.split("/")
        if ".git" in path.lower().split("/"):
            raise self._refusal(path, "it belongs to git")
        target = self.folder
        for parent in parents:
            target = target / parent
            if target.is_symlink():
                raise self._refusal(path, f"{target.name} on the way to it is a symlink")
            if target.exists() and not target.is_dir():
                raise self._refusal(path, f"{target.name} on the way to it is no folder")
        target = target / name
        if target.is_symlink():
            raise self._refusal(path, "it is a symlink")
        return target

    def _remove_empty_parents(self, target: Path) -> None:
        for parent in target.parents:
            if parent == self.folder:
                return
            if parent.is_dir():  # else an earlier try has removed it
                if any(parent.iterdir()):
                    return
                parent.rmdir()

    def _refusal(self, path: str, why: str) -> Refused:
        return Refused(
            "output-not-regular",
            why,
            file=path,
            hint="capsmith writes regular files only; move this away.",
        )


def _state(file: Path) -> str:
    """The digest of a file; empty when there is none."""
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""


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
