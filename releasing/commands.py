"""Run programs, whose output is shown only if they fail."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

_LAST = 8_000
"""Characters of an output that are shown; its end has the error."""


class FailedError(Exception):
    """A step of the release failed; the text says why."""


def run(
    command: Sequence[str | Path], folder: Path, environment: Mapping[str, str] | None = None
) -> str:
    """Run ``command`` in ``folder``; return what it writes to standard output.

    ``environment`` is added to that of this process, without what would lead a Python to other
    packages than its own.  Raises FailedError with the end of the output.
    """
    words = [str(word) for word in command]
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    }
    done = subprocess.run(
        words,
        cwd=folder,
        env={**inherited, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        output = f"{done.stdout}{done.stderr}"[-_LAST:]
        raise FailedError(f"{' '.join(words)} failed with {done.returncode}:\n{output}")
    return done.stdout
