"""Each slice of the runtime carries the modules that its modules import."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

import pytest

from capsmith.commands.build import load_runtime_library
from capsmith.output.runtime import PACKAGE, Runtime, build_vendored_files

LIBRARY = load_runtime_library()


@cache
def _imports(text: str) -> frozenset[str]:
    """Return the modules and names of the library that a module imports."""

    def found() -> Iterator[str]:
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGE):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)

    return frozenset(found())


def _closure(name: str) -> set[str]:
    needed = (_closure(each) for each in LIBRARY.slices[name].needs)
    return {name}.union(*needed)


@pytest.mark.parametrize("name", LIBRARY.slices)
def test_a_slice_carries_what_it_imports(name: str) -> None:
    slices = tuple(sorted(_closure(name)))
    runtime = Runtime("vendored", LIBRARY.version, slices, (), LIBRARY.permissions)
    files = {
        file.path.removeprefix("vendor/"): file.text
        for file in build_vendored_files(runtime, LIBRARY)
    }
    carried = set(files)
    missing = {
        f"{path} imports {name}"
        for path, text in files.items()
        if path.endswith(".py")
        for name in _imports(text)
        if not _is_carried(name, carried)
    }

    assert missing == set()


def _is_carried(name: str, carried: set[str]) -> bool:
    path = name.replace(".", "/")
    parent = path.rpartition("/")[0]
    files = (f"{each}{end}" for each in (path, parent) for end in (".py", "/__init__.py"))
    return not carried.isdisjoint(files)
