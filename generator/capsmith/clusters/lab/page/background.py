"""Serve a lab's page in the background, until the lab is shut down."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from capsmith.clusters.lab.errors import LabError, keep_tail
from capsmith.clusters.lab.folder import LabFolder, hold, is_held
from capsmith.clusters.lab.page.start import require_page
from capsmith.clusters.processes.wait import PATIENCE

_LOOK_SECONDS = 0.05


def start_page(lab: LabFolder) -> Path:
    """Serve a running lab's page in the background, and return the path of its opener.

    If the page is already being served, or another command is starting it, that page is used.
    Raises LabError if the page does not start.
    """
    require_page()
    # Two commands at once would remove each other's opener.
    with hold(lab.page_start_lock):
        return _start_page(lab)


def _start_page(lab: LabFolder) -> Path:
    child: subprocess.Popen[bytes] | None = None
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        # The lock comes first: a page that has just ended may have left its opener.
        if not is_held(lab.page_lock):
            if child is None:
                lab.page_opener.unlink(missing_ok=True)
                child = _spawn(lab)
            elif child.poll() is not None:
                break
        elif lab.page_opener.exists():
            return lab.page_opener
        time.sleep(_LOOK_SECONDS)
    if child is not None:
        child.terminate()
    log = lab.page_log.read_text(encoding="utf-8", errors="replace") if child is not None else ""
    hint = "Run capsmith lab page to see more."
    message = f"the page does not start\n{keep_tail(log)}".rstrip()
    raise LabError("lab-page", message, hint=hint)


def _spawn(lab: LabFolder) -> subprocess.Popen[bytes]:
    with lab.page_log.open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "capsmith.clusters.lab.page", str(lab.root)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            # The page outlives this command, and its Ctrl-C.
            start_new_session=True,
        )
