"""The folder that the processes of one run of the tests share."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

RUN_FOLDER: Final = "CAPSMITH_TEST_RUN"
"""The variable with its path."""


def build_once(folder: Path, build: Callable[[Path], None]) -> Path:
    """Return ``folder``, after the first process that needs it has built it; do not write there.

    ``build`` receives the path of a folder to create.  The others wait for it, and build the folder
    themselves if it fails.
    """
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            scratch = folder.with_suffix(".new")
            shutil.rmtree(scratch, ignore_errors=True)
            build(scratch)
            scratch.rename(folder)
    return folder
