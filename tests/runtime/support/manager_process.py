"""The manager of `manager_main` as a process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_ROOT = Path(__file__).parents[3]
ENDS_WITHIN = 120.0
"""Seconds after which a process is considered hung."""


@contextmanager
def running_manager(author: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Start a manager whose author's code never returns; kill it at the end."""
    program = [sys.executable, "-m", "tests.runtime.manager_main"]
    process = subprocess.Popen(
        [*program, f"--author={author}", "--diagnostics-address=127.0.0.1:0", *arguments],
        cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for(process: subprocess.Popen[str], line: str) -> None:
    """Wait until the process prints a line."""
    assert process.stdout is not None
    for found in process.stdout:
        if found == f"{line}\n":
            return
    raise AssertionError(f"the manager ended without: {line}")
