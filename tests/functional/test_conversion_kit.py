"""The generated tests of conversions between API versions, with functions of the author."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.cases import EXAMPLES, Case, generated
from tests.repositories import run_module
from tests.version_functions import FUNCTIONS, write_functions

_TESTS = "tests/test_conformance.py"


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("conversion") / "repository"
    generated(Case("two-contracts", EXAMPLES / "two-contracts" / "provider.yaml"), folder)
    return folder


def test_lossless_functions_pass(repository: Path) -> None:
    """Proves: CRD-15."""
    write_functions(repository)

    done = run_module(
        repository, "pytest", "-v", "-p", "no:cacheprovider", "-k", "VersionFields", _TESTS
    )
    assert done.returncode == 0, done.stdout
    assert "[HarbourMachine-v1alpha1-to-v1beta1]" in done.stdout
    assert "[HarbourMachineTemplate-v1beta1-to-v1alpha1]" in done.stdout


@pytest.mark.parametrize(
    ("written", "broken", "message"),
    [
        # Each loses a field or a part of it; the first keeps it in the annotation alone.
        ("(zone=zone, rack=rack)", "(zone=zone)", "spec.zone is"),
        ("/{spec.rack}", "/a", "spec.placement is"),
        ('(powered_on=status.power == "Running")', "()", "status.power is"),
    ],
)
def test_functions_that_lose_a_field_fail(
    repository: Path, written: str, broken: str, message: str
) -> None:
    """Proves: CRD-15."""
    assert written in FUNCTIONS
    write_functions(repository, FUNCTIONS.replace(written, broken))

    selected = "VersionFields and HarbourMachine-"
    done = run_module(repository, "pytest", "-qx", "-p", "no:cacheprovider", "-k", selected, _TESTS)
    assert done.returncode == 1, done.stdout
    assert message in done.stdout
