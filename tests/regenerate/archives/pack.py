"""Pack a repository as an archive whose bytes depend on nothing but its files.

Usage: python tests/regenerate/archives/pack.py FOLDER ARCHIVE.tar.xz
"""

from __future__ import annotations

import io
import lzma
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

LEFT_OUT = frozenset({".git", "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache"})


def pack(folder: Path, archive: Path) -> None:
    """Write every file below ``folder``, sorted by name, without times and owners."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in files(folder):
            data = path.read_bytes()
            entry = tarfile.TarInfo(path.relative_to(folder).as_posix())
            entry.size = len(data)
            entry.mode = 0o755 if path.stat().st_mode & 0o100 else 0o644
            tar.addfile(entry, io.BytesIO(data))
    archive.write_bytes(lzma.compress(content.getvalue(), preset=9))


def files(folder: Path) -> Iterator[Path]:
    """Return the files of a repository, those of git and caches left out."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not LEFT_OUT & set(path.relative_to(folder).parts):
            yield path


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:])
    pack(source, target)
