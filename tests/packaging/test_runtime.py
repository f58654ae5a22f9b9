"""The runtime as a package of its own: what a repository in package mode depends on."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import capsmith
from tests.packaging.conftest import ROOT, build

SOURCE = ROOT / "runtime" / "src"


@pytest.fixture(scope="module")
def runtime_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT / "runtime", "wheel", tmp_path_factory.mktemp("runtime") / "out")


def test_wheel_is_the_package(runtime_wheel: Path) -> None:
    package = {
        path.relative_to(SOURCE).as_posix(): path.read_bytes()
        for path in (SOURCE / "capsmith_runtime").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(runtime_wheel) as archive:
        contents = {
            name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name
        }

    for name in ("py.typed", "slices.yaml", "kube/permissions.yaml"):
        assert f"capsmith_runtime/{name}" in package
    assert contents == package


def test_version_is_that_of_capsmith(runtime_wheel: Path) -> None:
    with zipfile.ZipFile(runtime_wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(archive.read(name).decode())

    assert metadata["Name"] == "capsmith-runtime"
    assert metadata["Version"] == capsmith.__version__


def test_wheel_is_imported_without_the_generator(runtime_wheel: Path) -> None:
    script = (
        "import sys; sys.modules['capsmith'] = None; sys.path.insert(0, sys.argv[1]);"
        "import capsmith_runtime, capsmith_runtime.manager;"
        "print(capsmith_runtime.__version__, capsmith_runtime.__file__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(runtime_wheel)],
        check=True,
        capture_output=True,
        text=True,
        timeout=900,
    )

    assert done.stdout.startswith(f"{capsmith.__version__} {runtime_wheel}")
