"""The hook of pre-commit and the action of GitHub run the command as it is."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.verify.places import RELEASE, ROOT, run

REPOSITORY = ROOT.parents[1]


def load(name: str) -> Any:
    return yaml.safe_load((REPOSITORY / name).read_text(encoding="utf-8"))


def test_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT / RELEASE)
    (hook,) = load(".pre-commit-hooks.yaml")
    program, command = shlex.split(hook["entry"])
    assert (program, command, hook["language"]) == ("capsmith", "verify", "python")
    result = run(*hook["args"], "--version", "v0.2.0")
    assert (result.exit_code, "breaks CC-06" in result.output) == (1, True)
    assert re.search(hook["files"], "config/crd/bases/a.yaml")


def act(folder: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run the step of the action that verifies, with the inputs of a workflow."""
    action = load("action.yml")
    (step,) = (each for each in action["runs"]["steps"] if each["name"] == "Verify")
    values = {name: entry.get("default", "") for name, entry in action["inputs"].items()} | inputs
    names = {
        key: re.fullmatch(r"\$\{\{ inputs\.(\w+) \}\}", text) for key, text in step["env"].items()
    }
    environment = {key: values[found[1]] for key, found in names.items() if found}
    assert environment.keys() == step["env"].keys()
    program = folder / "bin" / "capsmith"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m capsmith "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=folder,
        env={
            **os.environ,
            **environment,
            "PATH": path,
            "GITHUB_STEP_SUMMARY": str(program.parent / "summary.md"),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_action(tmp_path: Path) -> None:
    release = str(ROOT / RELEASE)
    result = act(tmp_path, paths=f"{release}/metadata.yaml", version="v0.1.0", sarif="out.sarif")
    assert (result.returncode, result.stderr) == (0, "")
    assert json.loads((tmp_path / "out.sarif").read_text())["runs"][0]["results"] == []
    broken = act(tmp_path, paths=release, arguments="--select CC-06", html="report.html")
    assert "**CC-06**" in (tmp_path / "bin" / "summary.md").read_text()
    assert (tmp_path / "report.html").read_text().endswith("</html>\n")
    broken = act(tmp_path, paths=release, arguments="--select CC-06 --advice", sarif="out.sarif")
    assert broken.returncode == 1
    assert "breaks CC-06" in broken.stdout
    (found,) = json.loads((tmp_path / "out.sarif").read_text())["runs"][0]["results"]
    assert found["ruleId"] == "CC-06"


def test_the_action_keeps_the_report_of_a_release_that_breaks() -> None:
    steps = load("action.yml")["runs"]["steps"]
    verify, keep = steps[-2:]
    assert (verify["name"], keep["uses"].partition("@")[0]) == ("Verify", "actions/upload-artifact")
    assert keep["with"] == {"name": "${{ inputs.artifact }}", "path": "${{ inputs.html }}"}
    assert "!cancelled()" in keep["if"]
    assert verify["env"]["HTML"] == keep["with"]["path"]


def test_inputs_of_the_action_are_no_code(tmp_path: Path) -> None:
    act(tmp_path, paths="$(touch a) `touch b`; touch c", arguments="; touch d")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bin"]
