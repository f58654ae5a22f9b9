"""`python -m capsmith.clusters.lab.page FOLDER` serves a lab's page until the lab is shut down."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from capsmith.clusters.lab.folder import LabFolder, acquire
from capsmith.clusters.lab.page.start import serve_lab
from capsmith.errors import CapsmithError


def main() -> int:
    """Serve the page. Return immediately if another process already serves it."""
    # uvicorn raises the signal again when it has ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    lab = LabFolder(Path(sys.argv[1]))
    lock = acquire(lab.page_lock)
    if lock is None:
        return 0
    try:
        serve_lab(lab, 0, lambda *_: None, opener=lab.page_opener, ends_with_lab=True)
    except CapsmithError as error:
        sys.exit(error.finding.message)
    finally:
        os.close(lock)
    return 0


if __name__ == "__main__":
    sys.exit(main())
