"""A repository with another license than the runtime's has, and passes on, both texts."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest
import yaml

from capsmith.output.runtime import FOLDER, PACKAGE
from tests.golden.cases import EXAMPLES, Case, generated

ROOT = Path(__file__).parents[2]
APACHE = (ROOT / "runtime" / "LICENSE").read_text(encoding="utf-8")
EXPRESSION = "MIT AND Apache-2.0"


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("licenses")
    spec = yaml.safe_load((EXAMPLES / "acme" / "provider.yaml").read_text())
    (folder / "provider.yaml").write_text(yaml.safe_dump({**spec, "licence": "MIT"}))
    generated(Case("licenses", folder / "provider.yaml"), folder / "repository")
    return folder / "repository"


def test_the_copy_of_the_runtime_has_its_license(repository: Path) -> None:
    """Section 4 of its license demands this of everyone who redistributes it."""
    assert (repository / FOLDER / "LICENSE").read_text(encoding="utf-8") == APACHE
    assert "MIT" in (repository / "LICENSE").read_text(encoding="utf-8")


def test_the_distribution_has_both(repository: Path, tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=repository, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        files = {path: archive.read(path) for path in archive.namelist()}
    (metadata,) = (text for path, text in files.items() if path.endswith(".dist-info/METADATA"))

    assert message_from_bytes(metadata)["License-Expression"] == EXPRESSION
    licenses = {path.partition(".dist-info/licenses/")[2]: files[path] for path in files}
    assert licenses[f"{FOLDER}/LICENSE"].decode() == APACHE
    assert "LICENSE" in licenses
    assert f"{PACKAGE}/LICENSE" in files


def test_the_image_names_both(repository: Path) -> None:
    dockerfile = (repository / "Dockerfile").read_text(encoding="utf-8")
    assert f'org.opencontainers.image.licenses="{EXPRESSION}"' in dockerfile
