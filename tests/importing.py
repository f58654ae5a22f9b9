"""Import packages that tests generate."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType


@contextmanager
def importable(source: Path, package: str) -> Iterator[None]:
    """Let a package be imported from a folder, even if another one of its name was imported.

    Several tests generate the same example, and one process runs many of them: otherwise, a
    test would get the modules of another test, which may have changed them.
    """
    before = _take(package)
    sys.path.insert(0, str(source))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(str(source))
        _take(package)
        sys.modules.update(before)


def _take(package: str) -> dict[str, ModuleType]:
    names = [name for name in sys.modules if name == package or name.startswith(f"{package}.")]
    return {name: sys.modules.pop(name) for name in names}
