"""A repository carries the modules of the runtime that it can reach, and no other."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest
import yaml

from capsmith.output.runtime import FOLDER, PACKAGE
from tests.functional.conftest import Repository

KIT = f"{PACKAGE}.testing.conformance"
_NAMED = re.compile(rf"{PACKAGE}(?:\.\w+)+")


def _modules(vendor: Path) -> dict[str, Path]:
    """Return the vendored modules by their dotted names."""
    found = {}
    for path in vendor.rglob("*.py"):
        parts = path.relative_to(vendor.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def _imports(path: Path) -> tuple[str, ...]:
    """Return what a file imports, those imports included that only a type checker reads."""
    return _imports_of(path.read_text(encoding="utf-8"))


# Most vendored modules are the same in each repository.
@cache
def _imports_of(text: str) -> tuple[str, ...]:
    return tuple(_iterate_imports(ast.parse(text)))


def _iterate_imports(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _entered(repository: Path) -> Iterator[str]:
    """Yield what the repository's own code imports, and what its page offers its author."""
    for folder in ("src", "tests", "hack"):
        for path in (repository / folder).rglob("*.py"):
            yield from _imports(path)
    yield from _NAMED.findall((repository / "docs" / "author-api.md").read_text(encoding="utf-8"))
    yield from _NAMED.findall((repository / "pyproject.toml").read_text(encoding="utf-8"))


def _reached(modules: Mapping[str, Path], entered: Iterator[str], slices: list[str]) -> set[str]:
    reached: set[str] = set()
    # The kit imports the scenarios of a slice by name, if the provider has controllers of it.
    pending = [*entered, *(f"{KIT}.{name}" for name in slices)]
    while pending:
        name = pending.pop()
        while name and name not in reached:
            if name in modules:
                reached.add(name)
                pending += _imports(modules[name])
            name = name.rpartition(".")[0]
    return reached


@pytest.fixture
def modules(repository: Repository) -> dict[str, Path]:
    vendor = repository.folder / FOLDER
    if not vendor.is_dir():
        pytest.skip("it depends on the runtime as a package")
    return _modules(vendor)


def test_every_vendored_module_is_reached(repository: Repository, modules: dict[str, Path]) -> None:
    lock = yaml.safe_load((repository.folder / ".capsmith" / "lock.yaml").read_text())
    reached = _reached(modules, _entered(repository.folder), lock["runtime"]["slices"])

    assert sorted(set(modules) - reached) == []


def test_every_imported_module_is_there(repository: Repository, modules: dict[str, Path]) -> None:
    missing = {
        name
        for path in (*modules.values(), *(repository.folder / "src").rglob("*.py"))
        for name in _imports(path)
        # The name of a class or a function follows the module that has it.
        if name.startswith(f"{PACKAGE}.") and not {name, name.rpartition(".")[0]} & set(modules)
    }

    assert missing == set()


def test_code_of_managers_imports_no_test_code(
    repository: Repository, modules: dict[str, Path]
) -> None:
    """The image has no ``testing``: pyproject.toml leaves it out of the distribution."""
    code = [*(repository.folder / "src").rglob("*.py")]
    code += [path for name, path in modules.items() if not name.startswith(f"{PACKAGE}.testing")]
    importing = {
        str(path.relative_to(repository.folder))
        for path in code
        for name in _imports(path)
        if name.startswith(f"{PACKAGE}.testing")
    }

    assert importing == set()
    assert f'exclude = ["/{FOLDER}/testing"]' in (repository.folder / "pyproject.toml").read_text()


def test_the_image_has_nothing_of_the_pages(
    repository: Repository, modules: dict[str, Path]
) -> None:
    """Pages and reports of capsmith are no part of what the Dockerfile installs."""
    installed = [*modules.values(), *(repository.folder / "src").rglob("*.py")]
    imported = {name.partition(".")[0] for path in installed for name in _imports(path)}
    assert imported.isdisjoint({"capsmith", "starlette", "uvicorn", "jinja2", "rich"})
    suffixes = {".html", ".css", ".js", ".jinja"}
    folders = (repository.folder / "src", repository.folder / FOLDER)
    assert not [path for each in folders for path in each.rglob("*") if path.suffix in suffixes]
    project = tomllib.loads((repository.folder / "pyproject.toml").read_text(encoding="utf-8"))
    needed = " ".join(project["project"]["dependencies"])
    assert "capsmith" not in needed.replace("capsmith-runtime", "")
    assert not re.search("starlette|uvicorn|jinja2|rich", needed)


def test_an_infrastructure_provider_carries_no_pools_and_no_control_planes(
    repository: Repository, modules: dict[str, Path]
) -> None:
    carried = {name.removeprefix(f"{PACKAGE}.") for name in modules}
    lock = yaml.safe_load((repository.folder / ".capsmith" / "lock.yaml").read_text())
    slices = set(lock["runtime"]["slices"])

    assert not any(name.startswith("legacy") for name in carried)
    assert ("contract.v1beta1" in carried) == bool({"v1beta1", "controlplane"} & slices)
    assert ("contract.machine_pool_status" in carried) == ("machine_pool" in slices)
    assert ("contract.control_plane_shapes" in carried) == ("controlplane" in slices)
    assert ("contract.bootstrap" in carried) == ("bootstrap" in slices)
