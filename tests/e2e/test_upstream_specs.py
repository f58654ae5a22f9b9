"""Cluster API's own end-to-end specs in a generated repository: all compile, and one runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from capsmith.clusters.processes.tools import Toolbox
from capsmith.clusters.processes.tools.go import find_go
from tests.checkout import environment
from tests.e2e.tools.gofmt import find_gofmt
from tests.e2e.upstream import run_specs
from tests.golden.cases import cases, generated

_OTHER_PROVIDERS = ("everything", "ec2")
_TITLES = ("Quick start", "Scaling a MachineDeployment")
_CASE = next(case for case in cases() if case.name == "pools")


def _run(folder: Path, *command: str, **variables: str) -> str:
    done = subprocess.run(
        command, cwd=folder, env=environment(**variables), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_generated_specs_are_formatted_and_vetted(tools: Toolbox, tmp_path: Path) -> None:
    """gofmt changes no generated file, and go vet, which compiles all of them, finds nothing."""
    generated(_CASE, tmp_path)
    module = tmp_path / "e2e"

    assert _run(module, str(find_gofmt(module)), "-l", ".") == ""
    _run(module, find_go().command, "vet", "-tags", "e2e", ".")


@pytest.mark.exhaustive
def test_specs_run_as_the_readme_says(tools: Toolbox, tmp_path: Path) -> None:
    """`make e2e`, typed in the folder after `capsmith new`, runs specs, and leaves no lab."""
    state = tmp_path / "state"
    scripts = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    capsmith = (sys.executable, "-m", "capsmith")
    # One for each thing that a lab simulates: machines, Pods, and machines without their objects;
    # those whose runtime extension is the process of the tests; and one that renames the Cluster of
    # a template, but not its Secrets.
    words = ("Scaling", "Draining", "Adopting", "runtime.extension", "several")
    focus = " ".join(f"--ginkgo.focus={each}" for each in words)
    _run(tmp_path, *capsmith, "new", "made", "--no-input", "name=acme", "e2e=yes")

    _run(
        tmp_path / "made",
        *("make", "e2e", f"ARGS={focus}", f"PYTHON={sys.executable}"),
        PATH=scripts,
        XDG_STATE_HOME=str(state),
    )

    assert not state.exists() or list(state.rglob("*e2e*")) == []
    shutil.rmtree(tmp_path / "made")


@pytest.mark.exhaustive
@pytest.mark.parametrize("example", _OTHER_PROVIDERS)
def test_specs_run_with_other_providers(example: str, tools: Toolbox, tmp_path: Path) -> None:
    """Specs pass with several versions and webhooks, and with the code for EC2 on moto."""
    results = run_specs(example, tmp_path, _TITLES)
    for each in results:
        print(each.describe())
    assert [each for each in results if each.state != "passed"] == []
    assert len(results) > len(_TITLES)
