"""Packages, workflows and images name the releases of Python in schemas/compatibility.yaml."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from capsmith import resources
from capsmith.contract.compatibility import load_compatibility
from capsmith.contract.model import ReleaseTesting
from tests.golden.cases import cases

ROOT = Path(__file__).parents[2]
PYTHON = load_compatibility(resources.schemas()).python
EXECUTED = [each.release for each in PYTHON.executed]
GENERATED = {case.name: case.expected for case in cases()}
TREES = pytest.mark.parametrize("tree", GENERATED.values(), ids=GENERATED)
_CLASSIFIER = "Programming Language :: Python :: "


def workflow(path: Path) -> dict[str, Any]:
    jobs: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]
    return jobs


def versions(job: dict[str, Any]) -> list[str]:
    """Return what `setup-python` installs in a job."""
    found = [step["with"]["python-version"] for step in job["steps"] if _sets_up(step)]
    if found == ["${{ matrix.python }}"]:
        matrix = job["strategy"]["matrix"]["python"]
        return matrix if isinstance(matrix, list) else [matrix]
    return found


def _sets_up(step: dict[str, Any]) -> bool:
    return str(step.get("uses", "")).startswith("actions/setup-python@")


@pytest.mark.parametrize(
    "folder",
    [ROOT, ROOT / "runtime", *GENERATED.values()],
    ids=["capsmith", "capsmith-runtime", *GENERATED],
)
def test_packages_name_the_releases(folder: Path) -> None:
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [each.removeprefix(_CLASSIFIER) for each in project["classifiers"]]
    assert [each for each in named if re.fullmatch(r"3\.\d+", each)] == EXECUTED
    assert project["requires-python"] == f">={EXECUTED[0]}"


def test_each_change_runs_those_of_ci() -> None:
    expected = [each.release for each in PYTHON.releases if each.run is ReleaseTesting.CI]
    assert versions(workflow(ROOT / ".github/workflows/ci.yaml")["test"]) == expected


def test_each_night_runs_all() -> None:
    jobs = workflow(ROOT / ".github/workflows/nightly.yaml")
    assert versions(jobs["python"]) == ["${{ fromJSON(needs.releases.outputs.python) }}"]
    (step,) = (each for each in jobs["releases"]["steps"] if each.get("id") == "table")
    assert "./dev releases matrix python" in step["run"]
    assert set(versions(jobs["test"])) <= set(EXECUTED)
    assert set(versions(jobs["node"])) <= set(EXECUTED)


@TREES
def test_generated_repositories_run_all(tree: Path) -> None:
    assert versions(workflow(tree / ".github/workflows/ci.yaml")["test"]) == EXECUTED


@TREES
def test_images_have_the_newest_that_each_change_runs(tree: Path) -> None:
    base = f"docker.io/library/python:{PYTHON.default.release}-slim"
    assert f"FROM {base} AS base\n" in (tree / "Dockerfile").read_text(encoding="utf-8")
    compilers = base.removesuffix("-slim")
    assert f"FROM {compilers} AS compilers\n" in (tree / "Dockerfile").read_text(encoding="utf-8")
    makefile = (tree / "Makefile").read_text(encoding="utf-8")
    assert f"BASE ?= {base}\nCOMPILERS ?= {compilers}\n" in makefile
    release = workflow(tree / ".github/workflows/release.yaml")
    assert versions(release["build"]) == [PYTHON.default.release]
