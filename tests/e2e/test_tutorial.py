"""The tutorial by its text alone: its files in an empty folder, and its commands."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from capsmith.clusters.processes.process import free_port
from capsmith.clusters.processes.tools import Toolbox
from tests.website.script import run, script, steps


def test_the_tutorial(tools: Toolbox, tmp_path: Path) -> None:
    text = script(steps("tutorial/ec2.md"))
    # In place of the environment that the reader has installed the provider into.
    text = text.replace("\ncd ec2\n", f"\ncd ec2\nln -s '{sys.prefix}' .venv\n", 1)
    folder, port = tmp_path / "ec2", str(free_port())

    done = run(
        text.replace("5000", port),
        tmp_path,
        PYTHONPATH=f"{folder / 'src'}:{folder / 'vendor'}",
        PYTHONDONTWRITEBYTECODE="1",
        PYTEST_ADDOPTS="--assert=plain -p no:cacheprovider",
    )

    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    passed = re.search(r"(\d+) passed", output)
    assert passed is not None
    assert int(passed[1]) > 30
    assert "has 3 Machines Running" in output
    states = re.findall(r"^i-\w+ (\S+)$", output, re.MULTILINE)
    assert states == 3 * ["running"] + 3 * ["terminated"]
    assert "capsmith verify: 0 break," in output
    assert (folder / "out" / "infrastructure-components.yaml").is_file()
