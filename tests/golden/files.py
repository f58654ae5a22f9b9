"""Trees of files: read, written and compared."""

from __future__ import annotations

import difflib
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class File:
    """A text, and whether it may be run."""

    text: str
    executable: bool


def read(folder: Path) -> dict[str, File]:
    """Return all files below ``folder``; links are not followed, and do not belong there."""
    return {path.relative_to(folder).as_posix(): _file(path) for path in _files(folder)}


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        assert stat.S_ISREG(mode) or stat.S_ISDIR(mode), path
        if stat.S_ISREG(mode):
            yield path


def _file(path: Path) -> File:
    return File(path.read_bytes().decode(), bool(path.stat().st_mode & stat.S_IXUSR))


def write(files: Mapping[str, File], folder: Path) -> None:
    """Write files below ``folder``."""
    for path, file in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.text.encode())
        target.chmod(0o755 if file.executable else 0o644)


def difference(old: Mapping[str, File], new: Mapping[str, File]) -> str:
    """Return a unified diff of two trees, empty when they are the same."""
    lines: list[str] = []
    for path in sorted({*old, *new}):
        before, after = old.get(path), new.get(path)
        if before == after:
            continue
        if before and after and before.executable != after.executable:
            lines.append(f"{path}: executable {before.executable} -> {after.executable}\n")
        lines += difflib.unified_diff(
            before.text.splitlines(keepends=True) if before else [],
            after.text.splitlines(keepends=True) if after else [],
            f"expected/{path}" if before else "(no such file)",
            f"generated/{path}" if after else "(no such file)",
        )
    return "".join(line if line.endswith("\n") else line + "\n" for line in lines)
