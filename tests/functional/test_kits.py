"""The conformance kit finds the mistakes of authors, and each of its scenarios finds one."""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from capsmith.commands.generate import generate
from capsmith_runtime.testing import conformance
from capsmith_runtime.testing.conformance import authored
from capsmith_runtime.testing.conformance.base import Conformance
from tests.functional.mistakes import KITS
from tests.functional.mistakes.base import find_file
from tests.functional.test_conversion_kit import MISTAKES
from tests.repositories import PytestServer, start_pytest_server

TABLE: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "scenarios.yaml").read_text())
FOUND_BY: dict[str, list[str]] = defaultdict(list)
"""The scenarios that the table names for a mistake, as ``kit/mistake``."""
for _scenario, _mistake in TABLE["planted"].items():
    FOUND_BY[_mistake].append(_scenario)
for _mistake, _scenario in TABLE["others"].items():
    FOUND_BY[_mistake].append(_scenario)
_FAILED = re.compile(r"^(?:FAILED|ERROR) tests/test_conformance\.py::(\w+::\w+)", re.MULTILINE)
_SCENARIO = re.compile(r"^tests/test_conformance\.py::(\w+::\w+)", re.MULTILINE)
_ATTEMPTS = 5
_CONFTEST = """\
from capsmith_runtime.testing.limits import set_limits

set_limits(wait_seconds={wait_seconds})
failed = set()


def pytest_runtest_logreport(report):
    if report.failed:
        failed.add(report.nodeid.partition("[")[0])


def pytest_runtest_protocol(item):
    # One case that fails proves that the scenario finds the mistake.
    return True if item.nodeid.partition("[")[0] in failed else None
"""
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


def test_the_table_names_the_mistakes_that_are_planted() -> None:
    found = {each for each in FOUND_BY if not each.startswith("conversion/")}
    assert found == {f"{kit}/{mistake}" for kit, mistake in PLANTED}
    # test_conversion_kit.py plants these in the functions of its repository.
    assert set(FOUND_BY) - found <= {f"conversion/{mistake}" for mistake in MISTAKES}


class Planted(NamedTuple):
    """A repository of a kit, in which tests plant mistakes."""

    repository: Path
    server: PytestServer

    def failing(self, *arguments: str) -> set[str]:
        """Run the kit; return the scenarios that fail."""
        return set(_FAILED.findall(self.run(*arguments)))

    def scenarios(self) -> set[str]:
        """Return the scenarios of the repository as it is."""
        return set(_SCENARIO.findall(self.run("--collect-only")))

    def run(self, *arguments: str) -> str:
        """Run the kit; return what pytest prints."""
        done = self.server.run("-q", "-rfE", "-p", "no:cacheprovider", *arguments)
        assert done.returncode in {0, 1}, done.stdout
        return done.stdout


class Repositories:
    """A repository of one kit at a time; tests repair what they break."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._kit = ""
        self._planted: Planted | None = None
        self._running = contextlib.ExitStack()

    def open(self, kit: str) -> Planted:
        """Return the repository of a kit, and close the one of another kit."""
        if self._planted is None or kit != self._kit:
            self.close()
            repository = self._generate(kit)
            server = self._running.enter_context(start_pytest_server(repository))
            self._kit, self._planted = kit, Planted(repository, server)
        return self._planted

    def close(self) -> None:
        """End the process of the repository that is open."""
        self._running.close()

    def _generate(self, kit: str) -> Path:
        repository = self._root / kit / "repository"
        if not repository.is_dir():
            repository.parent.mkdir()
            (repository.parent / "provider.yaml").write_text(KITS[kit].description)
            report = generate(repository.parent / "provider.yaml", repository)
            assert report.exit_code == 0, report.findings
            (repository / "tests" / "conftest.py").write_text(
                _CONFTEST.format(wait_seconds=KITS[kit].wait_seconds)
            )
            for edit in KITS[kit].authored:
                file = find_file(repository, edit)
                file.write_text(edit.apply_to(file.read_text(encoding="utf-8")), encoding="utf-8")
        return repository


@pytest.fixture(scope="module")
def repositories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Repositories]:
    with contextlib.closing(Repositories(tmp_path_factory.mktemp("kits"))) as found:
        yield found


@pytest.mark.parametrize(("kit", "mistake"), PLANTED)
def test_the_kit_finds(repositories: Repositories, kit: str, mistake: str) -> None:
    """Run the scenarios that the table names for the mistake: each fails."""
    planted, edit = repositories.open(kit), KITS[kit].mistakes[mistake]
    file = find_file(planted.repository, edit)
    text = file.read_text(encoding="utf-8")
    file.write_text(edit.apply_to(text), encoding="utf-8")
    try:
        _check_failing(planted, FOUND_BY[f"{kit}/{mistake}"])
    finally:
        file.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("kit", KITS)
def test_the_kit_accepts_what_is_right(repositories: Repositories, kit: str) -> None:
    """Run the scenarios that some mistake fails, which could be too slow for a kit's limit."""
    planted, texts = repositories.open(kit), dict[Path, str]()
    for edit in KITS[kit].right:
        file = find_file(planted.repository, edit)
        text = file.read_text(encoding="utf-8")
        texts.setdefault(file, text)
        file.write_text(edit.apply_to(text), encoding="utf-8")
    found = {each for mistake in KITS[kit].mistakes for each in FOUND_BY[f"{kit}/{mistake}"]}
    try:
        # Some scenarios exist only in the code with the mistake.
        found &= planted.scenarios()
        assert found
        failing = planted.failing(*(f"tests/test_conformance.py::{each}" for each in sorted(found)))
        assert failing == set()
    finally:
        for file, text in texts.items():
            file.write_text(text, encoding="utf-8")


def _check_failing(planted: Planted, scenarios: list[str]) -> None:
    """Run scenarios, again those that passed: some mistakes show in some orders of events only."""
    remaining = set(scenarios)
    for _ in range(_ATTEMPTS):
        remaining -= planted.failing(
            *(f"tests/test_conformance.py::{each}" for each in sorted(remaining))
        )
        if not remaining:
            return
    assert not remaining
