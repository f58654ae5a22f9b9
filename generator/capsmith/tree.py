"""Generated files in memory, so that everything is rendered before the first byte is written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from io import BufferedReader
from typing import Final, NamedTuple

from capsmith.safetext import RelativePath

SPEC_NAME: Final = RelativePath("provider.yaml")
"""The author's description of the provider, in its repository."""
_PREFIX: Final = "sha256:"


class Owner(StrEnum):
    """Who owns a file. The owner determines what an update does with the file."""

    GENERATED = "generated"
    """Updates replace the file, or refuse to do so if the author edited it."""
    MERGED = "merged"
    """The file is shared: updates merge it three ways."""
    SCAFFOLD = "scaffold"
    """The file is written once and then belongs to the author."""


class GeneratedFile(NamedTuple):
    """A generated file: POSIX path in the provider's repository, and text with a final newline."""

    path: RelativePath
    text: str
    owner: Owner
    executable: bool = False

    @property
    def digest(self) -> str:
        """Return the SHA-256 digest of the UTF-8 text, as ``sha256:`` and hexadecimal digits."""
        return digest(self.text)


def digest(content: str | bytes) -> str:
    """Return a SHA-256 digest as ``sha256:`` and hexadecimal digits.

    A string is encoded as UTF-8 first.
    """
    data = content.encode() if isinstance(content, str) else content
    return _PREFIX + hashlib.sha256(data).hexdigest()


def digest_stream(content: BufferedReader) -> str:
    """Return the digest of what a binary file contains, without holding it in memory."""
    return _PREFIX + hashlib.file_digest(content, "sha256").hexdigest()


def is_text_of(content: bytes, expected: str) -> bool:
    r"""Return whether ``content`` has the digest ``expected``, regardless of line endings.

    git converts ``\n`` to ``\r\n`` on some systems, which does not count as an edit.
    """
    if digest(content) == expected:
        return True
    return b"\r\n" in content and digest(content.replace(b"\r\n", b"\n")) == expected


def restore_line_ends(content: bytes, expected: str) -> bytes | None:
    r"""Return ``content`` with the line endings that give it the digest ``expected``.

    git may have converted all of them to ``\n`` or to ``\r\n``.  Return None if no line endings
    give that digest.
    """
    plain = content.replace(b"\r\n", b"\n")
    forms = (content, plain, plain.replace(b"\n", b"\r\n"))
    return next((form for form in forms if digest(form) == expected), None)


def digest_texts(texts: Mapping[str, str]) -> str:
    """Return one digest for several files, given as text by path. Their order does not matter."""
    return digest(json.dumps(sorted(texts.items())))


@dataclass(frozen=True, slots=True)
class FileTree:
    """Files sorted by path. Paths are unique, and none is the parent folder of another."""

    files: dict[str, GeneratedFile] = field(default_factory=dict)

    @classmethod
    def of(cls, files: list[GeneratedFile]) -> FileTree:
        """Build a tree from files in any order.

        Raises ValueError for duplicate paths, and if one path is a parent folder of another. Either
        is a bug in the blueprint manifest.
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
