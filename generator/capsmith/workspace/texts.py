"""The files of a folder: those with YAML, and data files as texts."""

from __future__ import annotations

import os
from collections.abc import Container, Iterator, Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import NamedTuple

from capsmith.errors import UnreadableInput

_ENDS = (".yaml", ".yml")
_SKIPPED = frozenset({"node_modules", "testdata", "third_party", "vendor", "__pycache__"})


class Limit(NamedTuple):
    """The most files that a folder may have, and the error when it has more."""

    files: int
    error: str
    hint: str


def yaml_files(folder: Path, limit: Limit, names: Container[str] = ()) -> Iterator[Path]:
    """Yield the YAML files below ``folder`` in order, and those with other ``names``.

    Symbolic links, hidden files and folders, and folders of dependencies are left out.  Raises
    UnreadableInput if there are more files than ``limit``.
    """
    count = 0
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f not in _SKIPPED)
        for name in sorted(files):
            path = Path(parent, name)
            if name.startswith(".") or not (name.endswith(_ENDS) or name in names):
                continue
            if path.is_symlink() or not path.is_file():
                continue
            count += 1
            if count > limit.files:
                message = f"more than {limit.files} files"
                raise UnreadableInput(limit.error, message, file=str(folder), hint=limit.hint)
            yield path


def read_texts(folder: Traversable) -> dict[str, str]:
    """Return the text of every file below ``folder``, by its POSIX path there, sorted."""
    return dict(LazyTexts(folder).items())


class LazyTexts(Mapping[str, str]):
    """The texts of a folder by POSIX path, sorted; each is read when it is first used."""

    def __init__(self, folder: Traversable) -> None:
        self._files = dict(sorted(_files(folder, ""), key=lambda file: file[0]))
        self._texts: dict[str, str] = {}

    def __getitem__(self, path: str) -> str:
        if path not in self._texts:
            self._texts[path] = self._files[path].read_text(encoding="utf-8")
        return self._texts[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


def _files(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    for entry in folder.iterdir():
        if entry.name == "__pycache__":
            continue
        path = prefix + entry.name
        if entry.is_dir():
            yield from _files(entry, path + "/")
        else:
            yield path, entry
