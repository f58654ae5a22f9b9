"""Commands on a pseudo-terminal."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import struct
import subprocess
import termios
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

_NONE: Mapping[str, str] = {}


class Terminal:
    """A process on a pseudo-terminal, and everything that it has printed."""

    def __init__(self, keyboard: int, process: subprocess.Popen[bytes]) -> None:
        self._keyboard = keyboard
        # One read may end in the middle of a character.
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self.process = process
        self.shown = ""

    def wait_for(self, holds: Callable[[str], bool]) -> None:
        """Read until a condition holds for the output."""
        while not holds(self.shown):
            self.shown += self._decoder.decode(os.read(self._keyboard, 65536))

    def read_rest(self) -> None:
        """Read until no process uses the terminal any longer."""
        # Linux reports the end as an error of the device.
        with suppress(OSError):
            while more := os.read(self._keyboard, 65536):
                self.shown += self._decoder.decode(more)

    def press_enter(self) -> None:
        os.write(self._keyboard, b"\n")


@contextmanager
def on_terminal(command: list[str], variables: Mapping[str, str] = _NONE) -> Iterator[Terminal]:
    """Run a command on a terminal of 60 columns."""
    keyboard, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    # Input must not appear among the output.
    settings = termios.tcgetattr(terminal)
    settings[3] &= ~termios.ECHO
    termios.tcsetattr(terminal, termios.TCSANOW, settings)
    unset = {"NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "CAPSMITH_PROGRESS"}
    inherited = {name: value for name, value in os.environ.items() if name not in unset}
    process = subprocess.Popen(
        command,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env={**inherited, "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8", **variables},
    )
    os.close(terminal)
    try:
        yield Terminal(keyboard, process)
    finally:
        process.kill()
        process.wait()
        os.close(keyboard)
