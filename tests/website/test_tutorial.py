"""The tutorial by its text alone: its files in an empty folder, and its commands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.website.blocks import Block, blocks

ROOT = Path(__file__).parents[2]
PAGE = blocks((ROOT / "docs" / "tutorial" / "ec2.md").read_text(encoding="utf-8"))


@pytest.mark.slow
def test_the_tutorial(tmp_path: Path) -> None:
    folder, output = tmp_path, ""
    for block in PAGE:
        if block.title:
            _write(folder, block)
        elif block.language == "sh":
            for command in block.text.splitlines():
                if command.startswith("cd "):
                    folder /= command.removeprefix("cd ")
                else:
                    output = _run(command, folder)
                    if command == "make test":
                        passed = re.search(r"(\d+) passed", output)
                        assert passed is not None, output
                        assert int(passed[1]) > 30
    assert "capsmith verify: 0 break," in output
    assert (folder / "out" / "infrastructure-components.yaml").is_file()


def _write(folder: Path, block: Block) -> None:
    path = folder / block.title
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(block.text, encoding="utf-8")


def _run(command: str, folder: Path) -> str:
    """Run a command as a reader does who has installed the provider and capsmith."""
    bin = folder.parent / ".bin" if folder.name == "ec2" else folder / ".bin"
    bin.mkdir(exist_ok=True)
    capsmith = bin / "capsmith"
    capsmith.write_text(
        f"#!/bin/sh\nPYTHONPATH='{ROOT / 'generator'}' exec '{sys.executable}' -m capsmith \"$@\"\n"
    )
    capsmith.chmod(0o755)
    result = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env={
            "HOME": str(folder),
            "PATH": os.pathsep.join([str(bin), str(Path(sys.executable).parent), os.defpath]),
            "PYTHON": sys.executable,
            "PYTHONPATH": os.pathsep.join([str(folder / "src"), str(folder / "vendor")]),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_ADDOPTS": "--assert=plain -p no:cacheprovider",
        },
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result.stdout + result.stderr
