"""A tree of generated files in memory: everything is rendered before the first byte is written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from capsmith.safetext import RelativePath


class Owner(StrEnum):
    """The owner of a file."""

    GENERATED = "generated"
    """Replaced on update; an edited one is refused by name."""
    MERGED = "merged"
    """Shared: merged three ways on update."""
    SCAFFOLD = "scaffold"
    """Written once, then the author's."""


class GeneratedFile(NamedTuple):
    """One file: POSIX path relative to the provider repository, text with a final newline."""

    path: RelativePath
    text: str
    owner: Owner
    executable: bool = False

    @property
    def digest(self) -> str:
        """Return ``sha256:`` and the hexadecimal digest of the UTF-8 text."""
        return digest(self.text)


def digest(content: str | bytes) -> str:
    """Return ``sha256:`` and the hexadecimal digest of bytes, or of the UTF-8 of text."""
    data = content.encode() if isinstance(content, str) else content
    return "sha256:" + hashlib.sha256(data).hexdigest()


def is_text_of(content: bytes, expected: str) -> bool:
    """Return whether ``content`` is the text with the digest ``expected``.

    Line ends may be ``\\r\\n``: git converts them on some systems.
    That is not an edit by the author.
    """
    if digest(content) == expected:
        return True
    return b"\r\n" in content and digest(content.replace(b"\r\n", b"\n")) == expected


def digest_texts(texts: Mapping[str, str]) -> str:
    """Return the digest of texts by path; the order of the mapping does not matter."""
    return digest(json.dumps(sorted(texts.items())))


@dataclass(frozen=True, slots=True)
class FileTree:
    """Files by path, sorted; each path once, and no path is the folder of another."""

    files: dict[str, GeneratedFile] = field(default_factory=dict)

    @classmethod
    def of(cls, files: list[GeneratedFile]) -> FileTree:
        """Build a tree.

        Raises ValueError when two files claim one path, or a path is the folder of another:
        that is a bug of the blueprint manifest.
        """
        tree: dict[str, GeneratedFile] = {}
        for file in sorted(files, key=lambda file: file.path):
            if file.path in tree:
                raise ValueError(f"two blueprints write {file.path}")
            tree[str(file.path)] = file
        for path in tree:
            for parent in _parents(path):
                if parent in tree:
                    raise ValueError(f"{parent} is both a file and the folder of {path}")
        return cls(tree)

    def __iter__(self) -> Iterator[GeneratedFile]:
        return iter(self.files.values())

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, path: str) -> GeneratedFile:
        return self.files[path]

    def __contains__(self, path: object) -> bool:
        return path in self.files


def _parents(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path
