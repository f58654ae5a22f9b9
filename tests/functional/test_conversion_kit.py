"""The generated tests of conversions between API versions, with functions of the author."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.golden.cases import EXAMPLES, Case, generated
from tests.repositories import PytestServer, start_pytest_server
from tests.version_functions import FUNCTIONS, write_functions

_TESTS = "tests/test_conformance.py"


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("conversion") / "repository"
    generated(Case("two-contracts", EXAMPLES / "two-contracts" / "provider.yaml"), folder)
    return folder


@pytest.fixture(scope="module")
def server(repository: Path) -> Iterator[PytestServer]:
    with start_pytest_server(repository) as started:
        yield started


def test_lossless_functions_pass(repository: Path, server: PytestServer) -> None:
    """Proves: CRD-15."""
    write_functions(repository)

    done = server.run("-v", "-p", "no:cacheprovider", "-k", "VersionFields", _TESTS)
    assert done.returncode == 0, done.stdout
    assert "[HarbourMachine-v1alpha1-to-v1beta1]" in done.stdout
    assert "[HarbourMachineTemplate-v1beta1-to-v1alpha1]" in done.stdout


MISTAKES: Final[Mapping[str, list[tuple[str, str, str]]]] = {
    # Each loses a field or a part of it; the first keeps it in the annotation alone.
    "functions that lose a field": [
        ("(zone=zone, rack=rack)", "(zone=zone)", "spec.zone is"),
        ("/{spec.rack}", "/a", "spec.placement is"),
        ('(powered_on=status.power == "Running")', "()", "status.power is"),
    ],
    "functions that return invalid fields": [
        ('"Stopped"', '"halted"', "test_converted_objects_have_valid_fields"),
    ],
    "functions that return another value at each call": [
        (
            "rack=rack",
            "rack=__import__('uuid').uuid4().hex",
            "test_nothing_is_lost_on_the_way_there_and_back",
        ),
    ],
}
"""What is written, what a mistaken author writes instead, and what the report then has."""


@pytest.mark.parametrize(
    ("written", "broken", "message"), [edit for edits in MISTAKES.values() for edit in edits]
)
def test_mistaken_functions_fail(
    repository: Path, server: PytestServer, written: str, broken: str, message: str
) -> None:
    """Functions that lose or invent a value are found.

    Proves: CRD-15.
    """
    assert written in FUNCTIONS
    write_functions(repository, FUNCTIONS.replace(written, broken))

    selected = "VersionFields and HarbourMachine-"
    done = server.run("-q", "-p", "no:cacheprovider", "-k", selected, _TESTS)
    assert done.returncode == 1, done.stdout
    assert message in done.stdout
