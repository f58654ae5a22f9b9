"""Serve a lab's page in the background, until the lab ends."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from capsmith.clusters.lab.errors import LabError, keep_tail
from capsmith.clusters.lab.folder import LabFolder, is_held
from capsmith.clusters.lab.page.start import require_page
from capsmith.clusters.processes.wait import PATIENCE

_LOOK_SECONDS = 0.05


def start_page(lab: LabFolder) -> Path:
    """Serve the page of a running lab in the background, and return the path of its opener.

    The page that is already served is used.  Raises LabError if the page does not start.
    """
    require_page()
    if is_held(lab.page_lock):
        return lab.page_opener
    lab.page_opener.unlink(missing_ok=True)
    with lab.page_log.open("wb") as log:
        child = subprocess.Popen(
            [sys.executable, "-m", "capsmith.clusters.lab.page", str(lab.root)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            # The page outlives this command, and its Ctrl-C.
            start_new_session=True,
        )
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if lab.page_opener.exists():
            return lab.page_opener
        if child.poll() is not None and not is_held(lab.page_lock):
            break
        time.sleep(_LOOK_SECONDS)
    child.terminate()
    text = keep_tail(lab.page_log.read_text(encoding="utf-8", errors="replace"))
    hint = "Run capsmith lab page to see more."
    raise LabError("lab-page", f"the page does not start\n{text}".rstrip(), hint=hint)
