"""What a generated repository installs, in both modes of the runtime library."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tests.golden.cases import EXAMPLES, Case, generated
from tests.packaging.conftest import build


def _wheel(name: str, folder: Path) -> zipfile.ZipFile:
    generated(Case(name, EXAMPLES / name / "provider.yaml"), folder / "repository")
    return zipfile.ZipFile(build(folder / "repository", "wheel", folder / "out"))


def _metadata(wheel: zipfile.ZipFile) -> str:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return wheel.read(name).decode()


@pytest.mark.slow
def test_a_vendored_runtime_is_in_the_wheel(tmp_path: Path) -> None:
    with _wheel("acme", tmp_path) as wheel:
        names, metadata = set(wheel.namelist()), _metadata(wheel)

    packages = {name.partition("/")[0] for name in names if ".dist-info/" not in name}
    assert packages == {"cluster_api_provider_acme", "capsmith_runtime"}
    assert "capsmith_runtime/infrastructure/controllers.py" in names
    assert "capsmith_runtime/controlplane/controllers.py" not in names
    # A distribution of that name that is not registered is an invitation to register another.
    assert "capsmith-runtime" not in metadata
    assert "Requires-Dist: lightkube" in metadata


@pytest.mark.slow
def test_in_package_mode_the_wheel_requires_the_distribution(tmp_path: Path) -> None:
    with _wheel("everything", tmp_path) as wheel:
        names, metadata = set(wheel.namelist()), _metadata(wheel)

    assert not [name for name in names if name.startswith("capsmith_runtime/")]
    assert "Requires-Dist: capsmith-runtime<0.3,>=0.2.0" in metadata
    assert "Requires-Dist: lightkube" not in metadata
