"""The quick start by its text alone: its commands, in an empty folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from capsmith.management.tools import Toolbox
from tests.website.blocks import blocks

_ROOT = Path(__file__).parents[2]
_PAGE = _ROOT / "docs" / "quickstart.md"


def test_the_quick_start(tools: Toolbox, tmp_path: Path) -> None:
    shown = [block.text for block in blocks(_PAGE.read_text(encoding="utf-8"))]
    script = "".join(text for text in shown if not text.startswith("$ "))
    assert script.count("\n") > 8
    bin = tmp_path / "bin"
    bin.mkdir()
    command = f"#!/bin/sh\nexec '{sys.executable}' -m capsmith \"$@\"\n"
    (bin / "capsmith").write_text(command, encoding="utf-8")
    (bin / "capsmith").chmod(0o755)
    path = [str(bin), str(Path(sys.executable).parent), os.environ["PATH"]]
    environment = {**os.environ, "PATH": os.pathsep.join(path)}
    environment["XDG_STATE_HOME"] = str(tmp_path / "state")
    try:
        done = subprocess.run(
            ["sh", "-eu", "-c", script],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=540,
        )
    finally:
        end = [str(bin / "capsmith"), "lab", "down", "--all", "--force"]
        subprocess.run(end, env=environment, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "has 3 Machines Running" in done.stdout
    assert "acmemachine.infrastructure.cluster.x-k8s.io/demo-" in done.stdout
