"""A fork that meets a fault at one event: killed, killed with a file half written, or refused."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from capsmith.errors import CapsmithError

When = Callable[[int, str, str], bool]
"""Number, name and path of an event -> whether the fault is met there."""
MUTATIONS = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.link"}
GROWING = {"open", "os.mkdir", "os.rename"}


def dies(action: Callable[[], object], when: When, fault: str) -> bool:
    """Run ``action`` in a fork that meets ``fault`` at one event; return whether it did."""
    child = os.fork()
    if not child:
        os._exit(_run(action, when, fault))
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    code = os.WEXITSTATUS(status)
    assert code in (0, errno.ENOSPC, errno.EACCES), f"it ended with {code}"
    return code != 0


def _run(action: Callable[[], object], when: When, fault: str) -> int:
    met = busy = False
    count = 0

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal met, busy, count
        if busy or not _changes_the_disk(event, arguments):
            return
        count += 1
        busy = True
        hit = when(count, event, str(arguments[0]))
        if hit and fault == "torn" and event == "open":
            Path(arguments[0]).write_bytes(b"ha")
        busy = False
        if hit and fault in ("kill", "torn"):
            os.kill(os.getpid(), signal.SIGKILL)
        met = met or hit
        if hit and fault == "denied":
            raise PermissionError(errno.EACCES, "injected", str(arguments[0]))
        if met and fault == "full" and event in GROWING:
            raise OSError(errno.ENOSPC, "injected", str(arguments[0]))

    sys.addaudithook(hook)
    try:
        action()
    except CapsmithError:
        pass
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", flush=True)
        return 1
    return (errno.ENOSPC if fault == "full" else errno.EACCES) if met else 0


def _changes_the_disk(event: str, arguments: tuple[Any, ...]) -> bool:
    if event != "open":
        return event in MUTATIONS
    mode, flags = arguments[1], arguments[2]
    return any(letter in mode for letter in "wax+") if mode else bool(flags & os.O_ACCMODE)
