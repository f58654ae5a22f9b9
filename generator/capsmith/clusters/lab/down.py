"""End a lab, and remove what it has left."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from capsmith.clusters.lab.kind import delete
from capsmith.clusters.lab.place import LabFolder, is_held
from capsmith.clusters.lab.state import read_lab, read_run

_END_SECONDS = 20.0
_KILL_SECONDS = 10.0
_STEP_SECONDS = 0.1


def down(lab: LabFolder) -> None:
    """End a lab and remove its files; one that has crashed too."""
    run, state = read_run(lab.run_state), read_lab(lab.state)
    _end(lab.run_lock, run.pid if run else 0)
    _end(lab.lock, state.pid if state else _pid_in(lab))
    delete(lab)
    lab.remove()


def _end(lock: Path, pid: int) -> None:
    """End the process that holds a lock: by SIGTERM, and then by SIGKILL."""
    for number, seconds in ((signal.SIGTERM, _END_SECONDS), (signal.SIGKILL, _KILL_SECONDS)):
        if not is_held(lock) or not pid:
            return
        with suppress(ProcessLookupError):
            os.kill(pid, number)
        deadline = time.monotonic() + seconds
        while is_held(lock) and time.monotonic() < deadline:
            time.sleep(_STEP_SECONDS)


def _pid_in(lab: LabFolder) -> int:
    try:
        return int((lab.root / "pid").read_text())
    except (OSError, ValueError):
        return 0
