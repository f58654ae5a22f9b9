"""How generated repositories get their author's code, and are run without being installed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

RUNTIME = Path(__file__).parents[1] / "runtime" / "src"
"""The folder of the runtime, for repositories that depend on it as a package."""

AUTHORED = ("src", "tests")
"""The folders of an example that its author would write in the generated repository."""


def has_authored_code(example: Path) -> bool:
    """Return whether an example has code besides its description."""
    return any((example / name).is_dir() for name in AUTHORED)


def add_authored_code(example: Path, repository: Path) -> None:
    """Copy the authored code of an example, if there is any, over the scaffolds."""
    for name in AUTHORED if has_authored_code(example) else ():
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(example / name, repository / name, dirs_exist_ok=True, ignore=ignored)


def import_path(repository: Path) -> str:
    """Return PYTHONPATH for a process that runs the code of ``repository``."""
    return os.pathsep.join([str(repository / "src"), str(runtime_folder(repository))])


def runtime_folder(repository: Path) -> Path:
    """Return the folder that ``repository`` imports the runtime from."""
    vendor = repository / "vendor"
    return vendor if vendor.is_dir() else RUNTIME
