"""The quick start by its text alone: its commands, in an empty folder."""

from __future__ import annotations

from pathlib import Path

from capsmith.clusters.processes.tools import Toolbox
from tests.website.script import run, script, steps


def test_the_quick_start(tools: Toolbox, tmp_path: Path) -> None:
    text = script(steps("quickstart.md"))
    assert text.count("\n") > 8

    done = run(text, tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "has 3 Machines Running" in done.stdout
    assert "acmemachine.infrastructure.cluster.x-k8s.io/demo-" in done.stdout
