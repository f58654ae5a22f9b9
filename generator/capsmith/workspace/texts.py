"""Read a folder of data files as texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.resources.abc import Traversable


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
