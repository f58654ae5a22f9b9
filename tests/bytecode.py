"""Bytecode of the runtime for generated repositories, compiled once in a run of the tests.

Each repository has a copy of the runtime.  Compiling it takes two seconds of processor time, in
each of the processes that start at the same time.
"""

from __future__ import annotations

import os
import py_compile
import shutil
from importlib.util import cache_from_source
from pathlib import Path

from tests.run_folder import RUN_FOLDER, build_once

RUNTIME = Path(__file__).parents[1] / "runtime" / "src"
"""The folder of the runtime, for repositories that depend on it as a package."""


def add_bytecode(vendor: Path) -> None:
    """Add bytecode to a copy of the runtime, except where a file already has some.

    Python checks it against a hash of the file, so it recompiles a file that has changed.  Does
    nothing outside of a run of the tests.
    """
    if RUN_FOLDER not in os.environ:
        return
    compiled = build_once(Path(os.environ[RUN_FOLDER]) / "bytecode", _compile)
    for path in vendor.rglob("*.py"):
        known = compiled / path.relative_to(vendor).with_suffix(".pyc")
        target = Path(cache_from_source(str(path)))
        if known.is_file() and not target.exists():
            target.parent.mkdir(exist_ok=True)
            # A process that already runs the repository reads a whole file or none.
            scratch = target.with_suffix(f".{os.getpid()}")
            shutil.copyfile(known, scratch)
            scratch.replace(target)


def _compile(folder: Path) -> None:
    mode = py_compile.PycInvalidationMode.CHECKED_HASH
    for path in RUNTIME.rglob("*.py"):
        target = folder / path.relative_to(RUNTIME).with_suffix(".pyc")
        target.parent.mkdir(parents=True, exist_ok=True)
        py_compile.compile(str(path), str(target), doraise=True, invalidation_mode=mode)
