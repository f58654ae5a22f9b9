"""Serve runs of pytest in a generated repository, each in a fork that has imported the runtime.

``repositories.py`` starts this file as a process. Each line of its input is a JSON list: the output
file, followed by the arguments of pytest. It prints the return code of each run. Code of the
repository's author is imported only in the fork, so each run sees the current files.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import signal
import sys
import threading

import pytest

PACKAGE = "capsmith_runtime"
TIMEOUT_SECONDS = 1800


def _import_runtime() -> None:
    package = importlib.import_module(PACKAGE)
    for module in pkgutil.walk_packages(package.__path__, f"{PACKAGE}."):
        if not module.name.endswith(".__main__"):
            importlib.import_module(module.name)


def _run(output: str, arguments: list[str]) -> int:
    """Run pytest in a fork; return its exit code, or the negative number of a signal."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 70
    try:
        signal.alarm(TIMEOUT_SECONDS)
        file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        for stream in (1, 2):
            os.dup2(file, stream)
        code = int(pytest.main(arguments))
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _serve() -> None:
    _import_runtime()
    # A thread would not exist in the forks, and its locks could be held there forever.
    assert threading.active_count() == 1, threading.enumerate()
    # What is imported stays in pages that the forks share.
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        output, *arguments = json.loads(line)
        print(_run(output, arguments), flush=True)


if __name__ == "__main__":
    _serve()
