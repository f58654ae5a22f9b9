"""How generated repositories get their author's code, and are run without being installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
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


def run_module(repository: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a module of Python in ``repository``, such as pytest, with its code on the path."""
    return subprocess.run(
        [sys.executable, "-m", *command],
        cwd=repository,
        env={
            "PATH": os.environ.get("PATH", os.defpath),
            "PYTHONPATH": import_path(repository.resolve()),
            "PYTHONDONTWRITEBYTECODE": "1",
            # Rewriting the kit's assertions takes longer than most of its tests.
            "PYTEST_ADDOPTS": "--assert=plain",
        },
        capture_output=True,
        text=True,
        timeout=1800,
    )
