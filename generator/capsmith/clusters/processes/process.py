"""Run supervised child processes.

Each child has its own session, so that Ctrl-C at the terminal reaches only the parent, and a
parent-death signal, so that it is killed when the parent exits. Linux ties that signal to the
thread that forked, so start processes from the main thread only.
"""

from __future__ import annotations

import http.client
import os
import random
import select
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from capsmith.clusters.processes.errors import ProcessError
from capsmith.clusters.processes.wait import PATIENCE, eventually

# A launcher sets the signal in the child and then becomes the component: a hook between fork and
# exec could deadlock if the parent has threads.  1 is PR_SET_PDEATHSIG.
_LAUNCHER = (
    "import ctypes, os, signal, sys\n"
    "ctypes.CDLL(None).prctl(1, signal.SIGKILL)\n"
    "os.getppid() == int(sys.argv[1]) or sys.exit('the parent is gone')\n"
    "os.execvp(sys.argv[2], sys.argv[2:])\n"
)
KEPT_STARTS = 5
"""Successive starts after each of which a process that is kept ends soon, before it is given up."""
# Like a Deployment, restart a manager that ends by itself.  A request to end goes to the whole
# process group, so it reaches the component directly, and the keeper waits for it.
_KEEPER = (
    "import os, signal, subprocess, sys, time\n"
    "ending, starts = [], 0\n"
    "signal.signal(signal.SIGTERM, lambda *_: ending.append(True))\n"
    "me, launcher, limit = str(os.getpid()), sys.argv[1], int(sys.argv[2])\n"
    "while True:\n"
    "    began = time.monotonic()\n"
    "    code = subprocess.call([sys.executable, '-ISc', launcher, me, *sys.argv[3:]])\n"
    "    starts = starts + 1 if time.monotonic() - began < 10 else 0\n"
    "    if ending or code == 0 or starts == limit:\n"
    "        sys.exit(code if code >= 0 else 128 - code)\n"
    "    time.sleep(0.5 * max(1, starts))\n"
)
# Below Linux's ephemeral ports, and above the ports of well-known services.
_PORTS = range(20_000, 32_000)
# Held until this process ends. Reserved with UDP, so that components can still listen with TCP.
_RESERVED: list[socket.socket] = []
_LOG_TAIL_LINES = 40
_LOG_TAIL_BYTES = 256 * 1024
_CHUNK = 64 * 1024
_ANSWER_SECONDS = 5.0
_NO_ANSWER = (OSError, http.client.HTTPException)
_TERM_SECONDS = 30.0
_POLL_SECONDS = 0.01


@dataclass(frozen=True)
class Usage:
    """A process's resource usage: peak memory in MiB, and CPU time in seconds."""

    peak_rss_mib: float
    cpu_seconds: float


def go_environment() -> dict[str, str]:
    """Return environment variables for long-running servers written in Go.

    With these variables, the servers collect garbage less often: garbage collection took about a
    third of a starting kube-apiserver's CPU time.  A limit bounds the additional memory.  The
    caller's own variables take precedence.
    """
    return {"GOGC": "400", "GOMEMLIMIT": "1GiB", **os.environ}


def bind_to_parent(argv: Sequence[str | Path]) -> list[str]:
    """Return a command that runs ``argv`` and is killed when the calling thread exits."""
    # Isolated and without site-packages: the interpreter starts faster and imports no file from the
    # current folder.
    return [sys.executable, "-ISc", _LAUNCHER, str(os.getpid()), *(str(part) for part in argv)]


class Process:
    """A long-running child process, such as an API server, and the log file for its output."""

    def __init__(
        self,
        name: str,
        argv: Sequence[str | Path],
        log: Path,
        env: Mapping[str, str] | None = None,
        *,
        kept: bool = False,
    ) -> None:
        """Define a process, without starting it.

        If ``kept`` is true, the process is restarted whenever it fails unexpectedly, unless it ends
        soon after each of its starts.  If ``env`` is None, it gets this process's environment.
        """
        self.name = name
        self.log = log
        self._kept = kept
        self._argv = [str(part) for part in argv]
        self._env = dict(os.environ if env is None else env)
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Return the component's process id or, between restarts, its keeper's.

        The keeper is the process that restarts the component.  Raises ProcessError if the component
        was never started.
        """
        keeper = self._group
        if not self._kept:
            return keeper
        # The keeper has one child at a time, and none between two attempts.
        children = Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()
        return int(children[0]) if children else keeper

    @property
    def exit_code(self) -> int | None:
        """Return the exit code, or the negative number of the signal that ended the process.

        Returns None if the process is running or was never started.
        """
        return None if self._child is None else self._child.poll()

    @property
    def _group(self) -> int:
        if self._child is None:
            raise ProcessError(f"{self.name} was not started")
        return self._child.pid

    @property
    def running(self) -> bool:
        """Return whether the process has been started and is still running."""
        return self._child is not None and self._child.poll() is None

    def start(self) -> None:
        """Start the process.

        Its output is appended to the log, which therefore covers all restarts.
        """
        self.log.parent.mkdir(parents=True, exist_ok=True)
        keeper = [sys.executable, "-ISc", _KEEPER, _LAUNCHER, str(KEPT_STARTS)]
        command = [*keeper, *self._argv] if self._kept else self._argv
        with self.log.open("ab") as stream:
            self._child = subprocess.Popen(
                bind_to_parent(command),
                env=self._env,
                # A component that reads from the terminal would take the user's input, or be
                # stopped for trying.
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_ready(self, probe: Callable[[], object], timeout: float = PATIENCE) -> float:
        """Wait until ``probe`` returns a true value, and return the elapsed time in seconds.

        ``timeout`` is in seconds. Raises ProcessError on a timeout, and immediately if the process
        exits.
        """
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
        """Raise ProcessError if the process has exited unexpectedly."""
        code = self.exit_code
        if code is None:
            return
        how = describe_exit(code)
        if self._kept and code > 0:
            how += f" soon after each of {KEPT_STARTS} starts"
        raise ProcessError(f"{self.name} {how}:\n{self.tail()}")

    def usage(self) -> Usage:
        """Return the resources that the running process has used so far, according to /proc."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        peak = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
        # The command name is in parentheses and may itself contain spaces and parentheses.
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        ticks = int(fields[11]) + int(fields[12])
        return Usage(int(peak.split()[1]) / 1024, ticks / os.sysconf("SC_CLK_TCK"))

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the component. Does nothing if it is not running."""
        self._signal(number)

    def kill(self) -> None:
        """Kill the process with SIGKILL, simulating a crash, and wait until it has exited."""
        self._signal(signal.SIGKILL)
        if self._child is not None:
            self._child.wait()

    def stop(self) -> None:
        """Stop the process with SIGTERM, or with SIGKILL after 30 seconds, and wait for it."""
        if self._child is None or not self.running:
            return
        self._signal(signal.SIGTERM)
        try:
            self._child.wait(_TERM_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def tail(self) -> str:
        """Return the last lines of the process's log file, or ``(no log)`` if there is no file."""
        if not self.log.exists():
            return "(no log)"
        # A manager can write gigabytes before it fails.
        with self.log.open("rb") as file:
            file.seek(max(0, self.log.stat().st_size - _LOG_TAIL_BYTES))
            text = file.read(_LOG_TAIL_BYTES).decode(errors="replace")
        lines = text.splitlines()[-_LOG_TAIL_LINES:]
        return "\n".join([f"--- end of {self.log.name} ---", *lines])

    def _signal(self, number: signal.Signals) -> None:
        if self.running:
            # The session leader is also the group leader, so its id is the group's id.
            os.killpg(self._group, number)


def describe_exit(code: int) -> str:
    """Return how a process ended, such as ``exited with code 1``; see :attr:`Process.exit_code`."""
    if code >= 0:
        return f"exited with code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:  # the module has no names for most realtime signals
        name = f"signal {-code}"
    return f"was terminated by {name}"


def free_port() -> int:
    """Return an unused local port, which stays reserved until this process exits.

    A component can listen on the port at any time, even after a restart: outgoing connections use
    other ports, and other processes that call this function get other ports.  Raises RuntimeError
    if no port is free.
    """
    # At random, because processes that start at the same time would otherwise all try the same
    # ports.
    for port in random.sample(_PORTS, len(_PORTS)):
        reservation = socket.socket(type=socket.SOCK_DGRAM)
        try:
            reservation.bind(("127.0.0.1", port))
            # The reservation excludes other callers of this function; a listener of any other
            # program is only detected by a TCP bind.
            with closing(socket.socket()) as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:
            reservation.close()
            continue
        _RESERVED.append(reservation)
        return port
    raise RuntimeError(f"no port is free among {_PORTS}")


def read_output(
    command: Sequence[str], env: Mapping[str, str], *, timeout: float, limit: int
) -> bytes:
    """Run a command, and return at most ``limit`` bytes of its output and errors.

    At the end, all processes of its group are killed.  Raises ProcessError if it cannot run, or has
    neither ended nor written that much after ``timeout`` seconds.
    """
    output, end = b"", time.monotonic() + timeout
    try:
        child = _start_group(command, env, subprocess.STDOUT)
    except (OSError, ValueError) as error:
        raise ProcessError(f"{' '.join(command)}: {error}") from error
    with _kill_group(child), cast(IO[bytes], child.stdout) as stream:
        while len(output) < limit:
            left = max(0.0, end - time.monotonic())
            if not select.select([stream], [], [], left)[0]:
                message = f"{' '.join(command)}: has not ended after {timeout:g} seconds"
                raise ProcessError(message)
            chunk = os.read(stream.fileno(), _CHUNK)
            if not chunk:
                break
            output += chunk
    return output[:limit]


def _start_group(
    command: Sequence[str], env: Mapping[str, str], errors: int
) -> subprocess.Popen[bytes]:
    """Start a command without standard input in a process group of its own.

    ``errors`` is what its standard error is connected to.
    """
    return subprocess.Popen(
        command,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=errors,
        start_new_session=True,
    )


@contextmanager
def _kill_group(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """Kill all processes of a child's group at the end, and wait for the child."""
    with child:
        try:
            yield
        finally:
            # Before the wait, which would let the system use the id for another group.
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)


class Ended(NamedTuple):
    """A program that has ended."""

    code: int
    output: bytes
    errors: bytes


def run_limited(
    command: Sequence[str], env: Mapping[str, str], *, timeout: float, limit: int
) -> Ended:
    """Run a command without standard input, and return its exit code and what it wrote.

    At the end, all processes of its group are killed.  Raises OSError if it cannot run, and
    ProcessError if it has not ended after ``timeout`` seconds, or writes more than ``limit`` bytes.
    """
    end = time.monotonic() + timeout
    child = _start_group(command, env, subprocess.PIPE)
    try:
        with _kill_group(child):
            output, errors = _read_both(child, end, limit)
            while not _has_ended(child) and time.monotonic() < end:
                time.sleep(_POLL_SECONDS)
            if not _has_ended(child):
                raise TimeoutError
    except TimeoutError as error:
        raise ProcessError(f"it has not ended after {timeout:g} seconds") from error
    return Ended(child.returncode, output, errors)


def _read_both(child: subprocess.Popen[bytes], end: float, limit: int) -> tuple[bytes, bytes]:
    """Return what a command writes to its two streams until it closes them."""
    parts = {cast(IO[bytes], child.stdout): bytearray(), cast(IO[bytes], child.stderr): bytearray()}
    waiting = list(parts)
    while waiting:
        ready = select.select(waiting, [], [], max(0.0, end - time.monotonic()))[0]
        if not ready:
            raise TimeoutError
        for stream in ready:
            chunk = os.read(stream.fileno(), _CHUNK)
            parts[stream] += chunk
            if not chunk:
                waiting.remove(stream)
        if sum(map(len, parts.values())) > limit:
            raise ProcessError(f"it has written more than {limit} bytes")
    output, errors = parts.values()
    return bytes(output), bytes(errors)


def _has_ended(child: subprocess.Popen[bytes]) -> bool:
    # Leaves the exit code to the wait, until which no other process can have the id.
    return os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def open_local(
    url: str | urllib.request.Request, timeout: float, context: ssl.SSLContext | None = None
) -> Any:
    """Open a URL of a server on this computer, whatever proxy the environment names."""
    handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
    if context is not None:
        handlers.append(urllib.request.HTTPSHandler(context=context))
    return urllib.request.build_opener(*handlers).open(url, timeout=timeout)


def probe_http(url: str, context: ssl.SSLContext | None = None) -> Callable[[], bool]:
    """Return a probe that is true if a health endpoint responds with status 200.

    For TLS, ``context`` holds the certificates to trust and to present.
    """

    def probe() -> bool:
        try:
            with open_local(url, _ANSWER_SECONDS, context) as response:
                return bool(response.status == 200)
        except _NO_ANSWER:
            return False

    return probe


def fetch_text(url: str) -> bytes:
    """Return the body of a response, or an empty string if the endpoint does not respond."""
    try:
        with open_local(url, _ANSWER_SECONDS) as response:
            return bytes(response.read())
    except _NO_ANSWER:
        return b""


def probe_port(port: int) -> Callable[[], bool]:
    """Return a probe that is true if a process listens on a local port."""

    def probe() -> bool:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=_ANSWER_SECONDS):
                return True
        except OSError:
            return False

    return probe
