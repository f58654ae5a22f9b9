"""The faults of the end-to-end tests replace what the runtime has."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_APPLY_ALL = "from tests.e2e.faulty_manager import FAULTS\nfor fault in FAULTS.values(): fault()"


def test_each_fault_finds_what_it_replaces() -> None:
    """In a process of its own: a fault changes the runtime for good."""
    done = subprocess.run(
        [sys.executable, "-c", _APPLY_ALL],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
