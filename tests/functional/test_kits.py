"""The conformance kit finds the mistakes of authors, and each of its scenarios finds one."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from capsmith.commands.generate import generate
from capsmith_runtime.testing import conformance
from capsmith_runtime.testing.conformance import authored
from capsmith_runtime.testing.conformance.base import Conformance
from tests.functional.mistakes import KITS, find_file
from tests.functional.test_conversion_kit import MISTAKES
from tests.repositories import run_module

TABLE: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "scenarios.yaml").read_text())
FOUND_BY: dict[str, list[str]] = defaultdict(list)
"""The scenarios that the table names for a mistake, as ``kit/mistake``."""
for _scenario, _mistake in TABLE["planted"].items():
    FOUND_BY[_mistake].append(_scenario)
_FAILED = re.compile(r"^(?:FAILED|ERROR) tests/test_conformance\.py::(\w+::\w+)", re.MULTILINE)
_ATTEMPTS = 5
PLANTED = [(kit, mistake) for kit in KITS for mistake in KITS[kit].mistakes]


def _scenarios() -> Iterator[str]:
    classes: list[type[Conformance]] = [authored.TestSamples, authored.TestTemplates]
    for each in pkgutil.iter_modules(conformance.__path__):
        if each.ispkg:
            package = importlib.import_module(f"{conformance.__name__}.{each.name}")
            classes += [getattr(package, name) for name in package.__all__]
    for tests in classes:
        yield from (f"{tests.__name__}::{name}" for name in vars(tests) if name.startswith("test_"))


def test_the_table_has_each_scenario_once() -> None:
    """A scenario without a mistake that fails it tests the library: tests/runtime/scenarios."""
    assert sorted(_scenarios()) == sorted(TABLE["planted"])


def test_the_table_names_mistakes_that_are_planted() -> None:
    found = {each for each in FOUND_BY if not each.startswith("conversion/")}
    assert found <= {f"{kit}/{mistake}" for kit, mistake in PLANTED}
    # test_conversion_kit.py plants these in the functions of its repository.
    assert set(FOUND_BY) - found <= {f"conversion/{mistake}" for mistake in MISTAKES}


@pytest.fixture(scope="module")
def repositories(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A repository of each kit; tests repair what they break."""
    found = {}
    for name, kit in KITS.items():
        folder = tmp_path_factory.mktemp(name)
        (folder / "provider.yaml").write_text(kit.description)
        assert generate(folder / "provider.yaml", folder / "repository").exit_code == 0
        found[name] = folder / "repository"
        (found[name] / "tests" / "conftest.py").write_text(
            "from capsmith_runtime.testing.limits import set_limits\n\n"
            f"set_limits(wait_seconds={kit.wait_seconds})\n"
        )
    return found


@pytest.mark.parametrize(("kit", "mistake"), PLANTED)
def test_the_kit_finds(repositories: dict[str, Path], kit: str, mistake: str) -> None:
    """Run the scenarios of the table; of a mistake that it does not name, all until one fails."""
    planted, repository = KITS[kit].mistakes[mistake], repositories[kit]
    file = find_file(repository, planted)
    text = file.read_text(encoding="utf-8")
    file.write_text(planted.apply_to(text), encoding="utf-8")
    try:
        expected = FOUND_BY[f"{kit}/{mistake}"]
        if expected:
            _check_failing(repository, expected)
        else:
            assert _failing(repository, "-x", "tests/test_conformance.py", *KITS[kit].options)
    finally:
        file.write_text(text, encoding="utf-8")


def _check_failing(repository: Path, scenarios: list[str]) -> None:
    """Run scenarios, again those that passed: some mistakes show in some orders of events only."""
    remaining = set(scenarios)
    for _ in range(_ATTEMPTS):
        remaining -= _failing(
            repository, *(f"tests/test_conformance.py::{each}" for each in sorted(remaining))
        )
        if not remaining:
            return
    assert not remaining


def _failing(repository: Path, *arguments: str) -> set[str]:
    """Run the kit; return the scenarios that fail."""
    done = run_module(repository, "pytest", "-q", "-rfE", "-p", "no:cacheprovider", *arguments)
    assert done.returncode in {0, 1}, done.stdout
    return set(_FAILED.findall(done.stdout))
