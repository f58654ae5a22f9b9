"""capsmith works from where people have it: installed, as a zip, and editable."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.golden.files import read
from tests.packaging.conftest import ROOT

SPEC = ROOT / "examples" / "acme" / "provider.yaml"
SHOW_ORIGIN = "import capsmith; print(capsmith.__file__)"


@pytest.fixture(params=["installed", "zip", "editable"])
def place(request: pytest.FixtureRequest, wheel: Path, tmp_path: Path) -> str:
    """Return the path from which capsmith is imported."""
    if request.param == "zip":
        return str(wheel)
    if request.param == "editable":
        return _editable(tmp_path)
    target = tmp_path / "site"
    install = ["pip", "install", "--quiet", "--no-index", "--no-deps", "--target", str(target)]
    subprocess.run(
        [sys.executable, "-m", *install, str(wheel)],
        check=True,
        capture_output=True,
        timeout=900,
    )
    return str(target)


def _editable(folder: Path) -> str:
    """Return the folders in the path file of an editable wheel, which has no copies."""
    script = "import sys, hatchling.build as b; print(b.build_editable(sys.argv[1]))"
    built = subprocess.run(
        [sys.executable, "-c", script, str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
        timeout=900,
    )
    with zipfile.ZipFile(folder / built.stdout.split()[-1]) as archive:
        payload = [name for name in archive.namelist() if ".dist-info/" not in name]
        assert [Path(name).suffix for name in payload] == [".pth"]
        return os.pathsep.join(archive.read(payload[0]).decode().split())


def _python(place: str, cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    home = {"HOME": str(cwd), "CAPSMITH_CACHE": str(cwd / "cache")}
    environment = {**os.environ, **home, "PYTHONPATH": place}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
        timeout=900,
    )


def test_generates_the_same_from_anywhere(place: str, tmp_path: Path) -> None:
    origin = _python(place, tmp_path, "-c", SHOW_ORIGIN).stdout
    assert origin.startswith(place.partition(os.pathsep)[0])
    assert "Usage: capsmith" in _python(place, tmp_path, "-m", "capsmith", "--help").stdout

    output = tmp_path / "acme"
    _python(place, tmp_path, "-m", "capsmith", "generate", str(SPEC), "-o", str(output))
    checkout = tmp_path / "from-checkout"
    command = ["-m", "capsmith", "generate", str(SPEC), "-o", str(checkout)]
    _python(str(ROOT / "generator"), tmp_path, *command)

    assert read(output) == read(checkout)
    assert {"provider.yaml", "vendor/capsmith_runtime/py.typed"} <= read(output).keys()


def test_new_needs_no_checkout(place: str, tmp_path: Path) -> None:
    command = ["-m", "capsmith", "new", "made", "--no-input", "--default-config", "name=acme"]
    _python(place, tmp_path, *command)

    assert "name: acme " in (tmp_path / "made" / "provider.yaml").read_text(encoding="utf-8")
