"""How generated repositories are run without being installed."""

from __future__ import annotations

import os
from pathlib import Path

RUNTIME = Path(__file__).parents[1] / "runtime" / "src"
"""The folder of the runtime, for repositories that depend on it as a package."""


def import_path(repository: Path) -> str:
    """Return PYTHONPATH for a process that runs the code of ``repository``."""
    return os.pathsep.join([str(repository / "src"), str(runtime_folder(repository))])


def runtime_folder(repository: Path) -> Path:
    """Return the folder that ``repository`` imports the runtime from."""
    vendor = repository / "vendor"
    return vendor if vendor.is_dir() else RUNTIME
