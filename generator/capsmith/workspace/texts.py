"""Reading a folder of capsmith's own data, all at once, as text."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources.abc import Traversable


def read_texts(folder: Traversable) -> dict[str, str]:
    """Text of every file below ``folder``, by its POSIX path there, sorted."""
    return dict(sorted(_files(folder, "")))


def _files(folder: Traversable, prefix: str) -> Iterator[tuple[str, str]]:
    for entry in folder.iterdir():
        path = prefix + entry.name
        if entry.is_dir():
            yield from _files(entry, path + "/")
        else:
            yield path, entry.read_text(encoding="utf-8")
