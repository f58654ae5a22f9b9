"""The runtime's version, its guard, and what it requires of a Python environment."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import capsmith
import capsmith_runtime
from capsmith_runtime.version import IncompatibleRuntimeError, require

RUNTIME = Path(__file__).parents[2] / "runtime"
PACKAGE = RUNTIME / "src/capsmith_runtime"
SLICES = yaml.safe_load((PACKAGE / "slices.yaml").read_text())
SERIES = capsmith_runtime.__version__.rpartition(".")[0]
FOR_TESTS = {"hypothesis", "pytest", "trustme", "yaml"}
"""What ``capsmith-runtime[testing]`` adds."""
MODULES = {"pyyaml": "yaml"}
"""Modules of distributions whose name differs."""


def test_generator_and_runtime_have_one_version() -> None:
    assert capsmith.__version__ == capsmith_runtime.__version__


def test_the_series_that_is_here_passes() -> None:
    require(SERIES)


@pytest.mark.parametrize("series", ["0.1", "0.9", "1.0", f"{SERIES}1"])
def test_another_series_is_refused_with_the_command_to_run(series: str) -> None:
    with pytest.raises(IncompatibleRuntimeError, match="capsmith update") as caught:
        require(series)

    assert isinstance(caught.value, ImportError)
    assert series in str(caught.value)
    assert capsmith_runtime.__version__ in str(caught.value)


def test_the_distribution_requires_what_all_slices_require() -> None:
    project = tomllib.loads((RUNTIME / "pyproject.toml").read_text())["project"]
    required = {*SLICES["common"]["requires"]}
    for entry in SLICES["slices"].values():
        required |= {*entry.get("requires", ())}

    assert sorted(project["dependencies"]) == sorted(required)


def _top_level_imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.partition(".")[0]


def _declared(slices: set[str]) -> set[str]:
    pending, requirements = list(slices), [*SLICES["common"]["requires"]]
    while pending:
        entry = SLICES["slices"][pending.pop()]
        requirements += entry.get("requires", ())
        pending += entry.get("needs", ())
    names = (re.match(r"[\w.-]+", requirement) for requirement in requirements)
    found = {name[0].replace("-", "_") for name in names if name is not None}
    return {MODULES.get(name, name) for name in found}


def test_each_import_is_declared_for_its_slice() -> None:
    undeclared = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        slices = set(parts[:3]) & set(SLICES["slices"])
        known = _declared(slices) | set(sys.stdlib_module_names) | {"capsmith_runtime"}
        known |= FOR_TESTS if parts[0] == "testing" else set()
        missing = set(_top_level_imports(path)) - known
        if missing:
            undeclared["/".join(parts)] = missing
    assert undeclared == {}
