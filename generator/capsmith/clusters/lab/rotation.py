"""Keep the logs of a lab small: a large one begins again, and its former lines are kept once.

Processes go on writing into the same file, so it is copied and emptied instead of renamed.  Lines
written in between are lost.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

MAX_BYTES = 20 * 1024 * 1024
"""Size of a log, in bytes, from which it begins again."""
_FORMER = ".1"
_LOGS = ("*.log", "*/*.log")


def rotate_logs(root: Path, max_bytes: int = MAX_BYTES) -> None:
    """Rotate the logs in a folder and its folders that have at least `max_bytes`.

    They must be open for appending.  A log that cannot be copied, as on a full disk, is emptied.
    """
    for pattern in _LOGS:
        for path in root.glob(pattern):
            with suppress(FileNotFoundError):
                if path.stat().st_size >= max_bytes:
                    _rotate(path)


def _rotate(path: Path) -> None:
    former = path.with_name(path.name + _FORMER)
    try:
        shutil.copyfile(path, former)
    except OSError:
        former.unlink(missing_ok=True)
    os.truncate(path, 0)
