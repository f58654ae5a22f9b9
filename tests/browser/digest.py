"""A digest of what decides how a picture looks; comments and docstrings do not."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable
from pathlib import Path


def compute_digest(paths: Iterable[Path], root: Path) -> str:
    """Return a digest of files and of their places below ``root``, as hexadecimal digits."""
    digest = hashlib.sha256()
    for path in paths:
        data = _read_code(path).encode() if path.suffix == ".py" else path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()}\n".encode() + data)
    return digest.hexdigest()


def _read_code(path: Path) -> str:
    """Return the lines of a Python file without docstrings, comments and blank lines."""
    text = path.read_text(encoding="utf-8")
    left_out: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            left_out |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = enumerate(text.splitlines(), 1)
    shown = (line.rstrip() for number, line in lines if number not in left_out)
    return "\n".join(line for line in shown if line and not line.lstrip().startswith("#"))
