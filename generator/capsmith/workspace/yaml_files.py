"""Find the YAML files of a release or a source tree."""

from __future__ import annotations

import os
from collections.abc import Container, Iterator
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
