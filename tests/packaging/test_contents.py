"""What is in the tree is in the distributions, and nothing else."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.packaging.conftest import ROOT, build

SOURCES = {
    "generator/capsmith": "capsmith",
    "blueprints": "capsmith/_data/blueprints",
    "schemas": "capsmith/_data/schemas",
    "runtime/src/capsmith_runtime": "capsmith/_data/runtime/capsmith_runtime",
}


def _tree() -> dict[str, bytes]:
    """Every file that a wheel has to carry, under its name in the wheel."""
    page = "docs/author-api.md"
    return {f"capsmith/_data/{page}": (ROOT / page).read_bytes()} | {
        f"{target}/{path.relative_to(ROOT / source).as_posix()}": path.read_bytes()
        for source, target in SOURCES.items()
        for path in (ROOT / source).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def _contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _payload(wheel: Path) -> dict[str, bytes]:
    return {n: c for n, c in _contents(wheel).items() if ".dist-info/" not in n}


def test_wheel_is_the_tree(wheel: Path) -> None:
    tree = _tree()

    assert any(name.startswith("capsmith/_data/blueprints/project/") for name in tree)
    assert any(name.startswith("capsmith/_data/schemas/contracts/") for name in tree)
    for name in ("py.typed", "slices.yaml", "kube/permissions.yaml"):
        assert f"capsmith/_data/runtime/capsmith_runtime/{name}" in tree
    assert _payload(wheel) == tree


def test_wheel_carries_licence_and_command(wheel: Path) -> None:
    information = {
        name.partition("/")[2]: content.decode()
        for name, content in _contents(wheel).items()
        if ".dist-info/" in name
    }

    assert information["licenses/LICENSE"] == (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "capsmith = capsmith.cli:main" in information["entry_points.txt"]


def test_wheel_of_sdist_is_the_wheel(wheel: Path, sdist: Path, tmp_path: Path) -> None:
    assert _contents(build(sdist, "wheel", tmp_path / "out")) == _contents(wheel)


def test_sdist_has_what_the_tests_need(sdist: Path) -> None:
    there = {path.name for path in sdist.iterdir()}

    assert {"tests", "examples", "docs", "requirements", "cookiecutter.json", "README.md"} <= there


@pytest.mark.parametrize("folder", ["blueprints", "schemas"])
def test_no_python_among_the_data(folder: str) -> None:
    # hatchling takes such a file for a module that an editable install would have to move.
    assert not list((ROOT / folder).rglob("*.py"))


def test_nothing_in_the_tree_is_ignored_by_git() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("no checkout")
    paths = [
        path.relative_to(ROOT).as_posix()
        for source in (*SOURCES, "examples", "tests/golden")
        for path in (ROOT / source).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    ]
    ignored = subprocess.run(
        ["git", "check-ignore", "--no-index", "--stdin"],
        cwd=ROOT,
        input="\n".join(paths),
        capture_output=True,
        text=True,
        check=False,  # 1 when nothing is ignored
        timeout=900,
    )

    assert ignored.stderr == ""
    assert ignored.stdout.split() == []
