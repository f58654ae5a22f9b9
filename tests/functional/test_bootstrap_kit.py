"""The conformance kit of a bootstrap provider fails when its author breaks the contract."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.cases import EXAMPLES, Case, generated
from tests.repositories import run_module

CONFIG = "controllers/kindle_config.py"

BROKEN = {
    "hands the key of the CA to workers": ("if config.is_control_plane:", "if files:"),
    "returns nothing": ("return BootstrapDocument(document,", "return None and BootstrapDocument("),
    "knows no pools": ("_token(config.name,", "_token(config.machine.name,"),
    "requests certificates that do not exist": ('.certificate("ca")', '.certificate("front")'),
}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kit") / "repository"
    generated(Case("bootstrap", EXAMPLES / "bootstrap" / "provider.yaml"), folder)
    return folder


@pytest.mark.parametrize("mistake", BROKEN)
def test_the_kit_reports_a_reconciler_that(repository: Path, mistake: str) -> None:
    right, wrong = BROKEN[mistake]
    (file,) = repository.glob(f"src/*/{CONFIG}")
    text = file.read_text()
    assert right in text
    file.write_text(text.replace(right, wrong))
    try:
        options = ("-x", "-q", "-p", "no:cacheprovider")
        done = run_module(repository, "pytest", *options, "tests/test_conformance.py")
    finally:
        file.write_text(text)

    assert done.returncode == 1, done.stdout
    assert "FAILED tests/test_conformance.py::TestBootstrap" in done.stdout
