"""`python -m capsmith.clusters.lab.supervisor`: the background process that owns a lab.

Until the lab has started, it reports to the parent process as lines of JSON; then it continues on
its own. Its child processes are killed when it exits, even if it is killed itself.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, NoReturn

from capsmith.clusters.lab.errors import LabError, convert_os_error, explain_process_error
from capsmith.clusters.lab.folder import LabFolder
from capsmith.clusters.lab.node_servers import NodeServers
from capsmith.clusters.lab.real_cluster import ExistingCluster
from capsmith.clusters.lab.servers import LabServers
from capsmith.clusters.lab.state import restore_toolbox
from capsmith.clusters.node.keeper import ABANDONED
from capsmith.clusters.node.tools import NodeTools
from capsmith.clusters.processes.tools import Toolbox
from capsmith.errors import CapsmithError

MAX_BYTES = 20 * 1024 * 1024
"""Log size, in bytes, at which a log is rotated."""
_FORMER = ".1"
_LOGS = ("*.log", "*/*.log")


# Processes keep writing to the same file, so a large log is copied and truncated instead of
# renamed. Lines written in between are lost.
def rotate_logs(root: Path, max_bytes: int = MAX_BYTES) -> None:
    """Rotate every log in a folder and its subfolders that has at least `max_bytes` bytes.

    The logs must be open for appending.  A log that cannot be copied, for example because the disk
    is full, is truncated.
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


_Servers = LabServers | NodeServers | ExistingCluster

_LOOK_SECONDS = 0.3
_ROTATION_SECONDS = 30.0


class _Ended(BaseException):
    """Raised when a signal requests the process to end."""


class _Ending:
    """Whether a signal has arrived.

    The signal's exception is lost if it is raised where the interpreter ignores exceptions.
    """

    is_asked = False

    def ask(self, *_: object) -> None:
        """Record the signal and raise _Ended; if that is lost, the next :meth:`check` raises it."""
        self.is_asked = True
        raise _Ended

    def check(self) -> None:
        """Raise _Ended if a signal has arrived."""
        if self.is_asked:
            raise _Ended


def main() -> int:
    """Start the lab described by the arguments, and supervise it until a signal arrives."""
    settings = json.loads(sys.argv[1])
    lab = LabFolder(Path(settings["root"]))
    ending = _Ending()
    with _signals(ending):
        try:
            return _run(lab, settings, ending)
        except _Ended:
            return 0


def _run(lab: LabFolder, settings: dict[str, Any], ending: _Ending) -> int:
    tools = restore_toolbox(settings["tools"], settings["found"], settings["kubernetes"])
    try:
        servers = _define(lab, settings, tools)
        try:
            servers.start(count_steps(servers.step_count, lambda text: _step(text, ending)))
            servers.look(time.monotonic(), lambda text: None)
            _tell({"ready": True})
            # From here on, the command that started the lab may end, and later writes must not fail
            # with EPIPE.
            _let_go_of_parent()
            _look_after(lab, servers, ending)
        finally:
            # A second Ctrl-C or SIGTERM must not interrupt the shutdown of the servers.
            _ignore_signals()
            servers.stop()
    except BrokenPipeError:
        # The command that was waiting for this lab has ended.
        if settings["node"]:
            return ABANDONED
        lab.remove()
    except CapsmithError as error:
        _fail(explain_process_error(error, lab.root))
    except OSError as error:
        _fail(convert_os_error(error, lab.root))
    except Exception as error:
        traceback.print_exc()
        hint = "This is a bug of capsmith: report it with the file lab.log."
        _fail(LabError("lab-failed", f"the lab cannot start: {error!r}", hint=hint))
    return 1


def _define(lab: LabFolder, settings: dict[str, Any], tools: Toolbox) -> _Servers:
    """Return the servers that the settings describe, without starting any."""
    core = settings["core"]
    if settings["given"]:
        return ExistingCluster(lab, core, tools, os.getpid())
    if settings["node"]:
        return NodeServers(lab, core, tools, NodeTools.of(settings["node"]), settings["port"])
    return LabServers(lab, core, tools, os.getpid(), settings["gates"])


def _look_after(lab: LabFolder, servers: _Servers, ending: _Ending) -> NoReturn:
    rotated = time.monotonic()
    while True:
        ending.check()
        # Without its folder, no command can find or end the lab.
        if not lab.root.is_dir():
            raise _Ended
        now = time.monotonic()
        try:
            servers.look(now, _note)
            if now - rotated >= _ROTATION_SECONDS:
                rotated = now
                rotate_logs(lab.root)
        except OSError as error:
            _note(f"the state cannot be written: {error}")
        time.sleep(_LOOK_SECONDS)


def count_steps(total: int, report: Callable[[str], None]) -> Callable[[str], None]:
    """Return a function that reports each step with its number, such as ``x (2 of 6)``.

    If there is only one step, it gets no number.
    """
    numbers = count(1)

    def report_numbered(text: str) -> None:
        report(f"{text} ({next(numbers)} of {total})" if total > 1 else text)

    return report_numbered


def _step(text: str, ending: _Ending) -> None:
    ending.check()
    _tell({"step": text})


def _note(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def _tell(message: dict[str, Any]) -> None:
    # Unbuffered, because the parent waits for each line, and buffered output would be lost if this
    # process were killed.
    os.write(1, (json.dumps(message) + "\n").encode())


def _fail(error: CapsmithError) -> None:
    finding = error.finding
    _note(finding.message)
    try:
        _tell({"error": [finding.id, finding.message, finding.hint, finding.location.file]})
    except OSError:
        return


def _let_go_of_parent() -> None:
    """Redirect stdout to /dev/null, which closes the pipe to the parent process."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)


@contextmanager
def _signals(ending: _Ending) -> Iterator[None]:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, ending.ask)
    # The lab outlives the terminal that it was started from.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    yield


def _ignore_signals() -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)


if __name__ == "__main__":
    sys.exit(main())
