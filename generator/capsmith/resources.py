"""Where the data of capsmith are: in the wheel (``capsmith/_data``) or in the checkout.

The only module that knows; everything else is given a folder or a text.
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
    """The folder of the blueprints."""
    return _folder("blueprints")


def schemas() -> Traversable:
    """The folder of the contract data and the JSON Schema of provider.yaml."""
    return _folder("schemas")


def fingerprint() -> str | None:
    """What changes whenever capsmith, its data, or something installed beside it does.

    Made of names, sizes and times of files, so it costs little.  None when capsmith is not there
    as files.
    """
    folders = [Path(__file__).parent, *(Path(str(data())) for data in (blueprints, schemas))]
    try:
        states = [state for folder in folders for state in _states(folder)]
        said = "\n".join([sys.version, *_installed(), *states])
    except OSError:
        return None
    return hashlib.sha256(said.encode()).hexdigest()


def _states(folder: Path) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.is_dir():
                if entry.name != "__pycache__":
                    yield from _states(Path(entry.path))
            else:
                status = entry.stat()
                yield f"{entry.path} {status.st_size} {status.st_mtime_ns}"


def _installed() -> list[str]:
    """The distributions that are installed beside the formatter, with their versions."""
    spec = find_spec("black")
    if spec is None or spec.origin is None:
        return []
    with os.scandir(Path(spec.origin).parent.parent) as entries:
        return sorted(entry.name for entry in entries if entry.name.endswith(".dist-info"))


@cache
def _folder(name: str) -> Traversable:
    shipped = files(_PACKAGE) / "_data" / name
    if shipped.is_dir():
        return shipped
    # A checkout, or an editable install of one: generator/capsmith/resources.py.
    return Path(__file__).parents[2] / name
