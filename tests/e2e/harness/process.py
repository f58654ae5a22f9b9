"""Supervised child processes.

A child gets a session of its own, so that a Ctrl-C at the terminal reaches only pytest,
and a parent-death signal, so that it does not outlive pytest however that ends. Linux ties
that signal to the thread that forked: start processes from the main thread only.
"""

from __future__ import annotations

import http.client
import os
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from .wait import PATIENCE, eventually

# Set in the child by a launcher that becomes the component: a hook between fork and exec
# may deadlock, because the helpers run threads beside the tests. 1 is PR_SET_PDEATHSIG.
_LAUNCHER = (
    "import ctypes, os, signal, sys\n"
    "ctypes.CDLL(None).prctl(1, signal.SIGKILL)\n"
    "os.getppid() == int(sys.argv[1]) or sys.exit('the parent is gone')\n"
    "os.execvp(sys.argv[2], sys.argv[2:])\n"
)
# What a Deployment does for its manager: one that ends by itself is started anew. A polite end
# reaches the component directly, the signal goes to the whole group, and is waited for.
_KEEPER = (
    "import os, signal, subprocess, sys, time\n"
    "asked = []\n"
    "signal.signal(signal.SIGTERM, lambda *_: asked.append(True))\n"
    "me, launcher = str(os.getpid()), sys.argv[1]\n"
    "while True:\n"
    "    code = subprocess.call([sys.executable, '-ISc', launcher, me, *sys.argv[2:]])\n"
    "    if asked or code == 0:\n"
    "        sys.exit(code)\n"
    "    time.sleep(0.5)\n"
)
# Below those that Linux takes for clients, above those of well-known services.
_PORTS = range(20_000, 32_000)
# Held until the process ends: components listen by TCP, so their ports are free by UDP.
_TOLD: list[socket.socket] = []
_LOG_TAIL_LINES = 40
_ANSWER_SECONDS = 5.0
_NO_ANSWER = (OSError, http.client.HTTPException)
_TERM_SECONDS = 30.0


class ProcessError(AssertionError):
    """A component ended, or never became ready; carries the end of its log."""


@dataclass(frozen=True)
class Usage:
    """What a process has used so far."""

    peak_rss_mib: float
    cpu_seconds: float


class Process:
    """One long-running component and its log file."""

    def __init__(
        self,
        name: str,
        argv: Sequence[str | Path],
        log: Path,
        env: Mapping[str, str] | None = None,
        *,
        kept: bool = False,
    ) -> None:
        """One that is `kept` is started again whenever it fails by itself."""
        self.name = name
        self.log = log
        self._kept = kept
        self._argv = [str(part) for part in argv]
        self._env = dict(os.environ if env is None else env)
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Of the component, or of its keeper while there is none."""
        keeper = self._group
        if not self._kept:
            return keeper
        children = Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()
        return int(children[0]) if children else keeper

    @property
    def _group(self) -> int:
        if self._child is None:
            raise ProcessError(f"{self.name} was not started")
        return self._child.pid

    @property
    def running(self) -> bool:
        return self._child is not None and self._child.poll() is None

    def start(self) -> None:
        """Start the process; the log is appended to, so that restarts keep their history."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        keeper = [sys.executable, "-ISc", _KEEPER, _LAUNCHER] if self._kept else []
        launcher = [sys.executable, "-ISc", _LAUNCHER, str(os.getpid())]
        with self.log.open("ab") as stream:
            self._child = subprocess.Popen(
                [*launcher, *keeper, *self._argv],
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_ready(self, probe: Callable[[], object], timeout: float = PATIENCE) -> float:
        """Wait until the probe is satisfied and return the seconds; fail at once on an exit."""
        began = time.monotonic()

        def ready() -> bool:
            self.check()
            return bool(probe())

        try:
            eventually(ready, timeout=timeout, what=f"{self.name} ready", interval=0.05)
        except TimeoutError as error:
            raise ProcessError(f"{error}\n{self.tail()}") from error
        return time.monotonic() - began

    def check(self) -> None:
        """Raise a lasting error if the process has ended by itself."""
        if self._child is not None and self._child.poll() is not None:
            raise RuntimeError(
                f"{self.name} ended with code {self._child.returncode}:\n{self.tail()}"
            )

    def usage(self) -> Usage:
        """Peak memory and processor time of the running process, from the kernel's books."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        peak = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        ticks = int(fields[11]) + int(fields[12])
        return Usage(int(peak.split()[1]) / 1024, ticks / os.sysconf("SC_CLK_TCK"))

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the component, if it runs."""
        self._signal(number)

    def kill(self) -> None:
        """End the process as a crash would."""
        self._signal(signal.SIGKILL)
        if self._child is not None:
            self._child.wait()

    def stop(self) -> None:
        """End the process politely, then by force."""
        if self._child is None or not self.running:
            return
        self._signal(signal.SIGTERM)
        try:
            self._child.wait(_TERM_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def tail(self) -> str:
        """The end of the log."""
        if not self.log.exists():
            return "(no log)"
        lines = self.log.read_text(errors="replace").splitlines()[-_LOG_TAIL_LINES:]
        return "\n".join([f"--- end of {self.log.name} ---", *lines])

    def _signal(self, number: signal.Signals) -> None:
        if self.running:
            os.killpg(self._group, number)


def free_port() -> int:
    """A port on which nobody listens, told to nobody else on this machine while this process lives.

    So a component may be given it before it starts, and find it again after a restart: connections
    that clients open take no such port, and another process that asks here gets another one.
    """
    for port in random.sample(_PORTS, len(_PORTS)):
        told = socket.socket(type=socket.SOCK_DGRAM)
        try:
            told.bind(("127.0.0.1", port))
            with closing(socket.socket()) as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:
            told.close()
            continue
        _TOLD.append(told)
        return port
    raise RuntimeError(f"no port is free among {_PORTS}")


def http_ok(url: str) -> Callable[[], bool]:
    """A probe: does this plain-text health endpoint answer 200?"""

    def probe() -> bool:
        try:
            with urllib.request.urlopen(url, timeout=_ANSWER_SECONDS) as response:
                return bool(response.status == 200)
        except _NO_ANSWER:
            return False

    return probe


def http_text(url: str) -> bytes:
    """What an endpoint answers; nothing while there is nobody who does."""
    try:
        with urllib.request.urlopen(url, timeout=_ANSWER_SECONDS) as response:
            return bytes(response.read())
    except _NO_ANSWER:
        return b""


def port_open(port: int) -> Callable[[], bool]:
    """A probe: does a process listen on this local port?"""

    def probe() -> bool:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=_ANSWER_SECONDS):
                return True
        except OSError:
            return False

    return probe
