"""Remove folders while processes that are exiting may still write to them."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

_ATTEMPTS = 10
_ATTEMPT_SECONDS = 0.05


def remove_folder(folder: Path, parents: int = 0) -> None:
    """Remove a folder, and then up to ``parents`` parent folders that have become empty.

    Anything that cannot be removed stays.
    """
    for _ in range(_ATTEMPTS):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            break
        time.sleep(_ATTEMPT_SECONDS)  # a killed process may write until it has ended
    for each in list(folder.parents)[:parents]:
        try:
            each.rmdir()
        except OSError:
            return
