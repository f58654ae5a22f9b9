"""Locate capsmith's data folders: in the wheel (``capsmith/_data``) or in a checkout.

Only this module depends on their location. All others receive a folder or a string.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path

_PACKAGE = "capsmith"


def blueprints() -> Traversable:
    """Return the folder that contains the blueprints."""
    return _folder("blueprints")


def schemas() -> Traversable:
    """Return the folder that contains the contract data and the JSON Schema for provider.yaml."""
    return _folder("schemas")


def runtime() -> Traversable:
    """Return the folder that contains the runtime library, capsmith_runtime."""
    return _folder("runtime", "runtime/src") / "capsmith_runtime"


def author_api() -> Traversable:
    """Return the Markdown file that documents the runtime library's Python API."""
    return _folder("docs") / "author-api.md"


def compute_fingerprint() -> str | None:
    """Return a fingerprint that changes with capsmith, its data, and its dependencies.

    It depends on the names, sizes and modification times of files, not on their content.  Returns
    None if capsmith is not installed as files, for example if it runs from a zip archive.
    """
    folders = [
        Path(__file__).parent,
        *(Path(str(data())) for data in (blueprints, schemas, runtime)),
    ]
    page = Path(str(author_api()))
    try:
        states = [state for folder in folders for state in _states(folder)]
        states.append(_state(page, page.stat()))
        state = "\n".join([sys.version, *_installed(), *states])
    except OSError:
        return None
    return hashlib.sha256(state.encode()).hexdigest()


def _states(folder: Path) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.is_dir():
                if entry.name != "__pycache__":
                    yield from _states(Path(entry.path))
            else:
                yield _state(entry, entry.stat())


def _state(path: os.PathLike[str], status: os.stat_result) -> str:
    return f"{os.fspath(path)} {status.st_size} {status.st_mtime_ns}"


def _installed() -> list[str]:
    """Return names and versions of the distributions installed next to black.

    They determine how generated Python is formatted, and how YAML is written.
    """
    spec = find_spec("black")
    if spec is None or spec.origin is None:
        return []
    with os.scandir(Path(spec.origin).parent.parent) as entries:
        return sorted(entry.name for entry in entries if entry.name.endswith(".dist-info"))


@cache
def _folder(name: str, in_checkout: str | None = None) -> Traversable:
    shipped = files(_PACKAGE) / "_data" / name
    if shipped.is_dir():
        return shipped
    # A checkout, or an editable install of one, with generator/capsmith/resources.py.
    return Path(__file__).parents[2] / (in_checkout or name)
