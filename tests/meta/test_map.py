"""tests/map.yaml knows every package and every folder of tests; tests/README.md describes them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.meta.selection import ROOT, TESTS, Needed, has_tests, read_map, select

ENTRIES = read_map()
PACKAGES = [
    folder.relative_to(ROOT).as_posix()
    for parent in (
        "generator/capsmith",
        "generator/capsmith/judge",
        "generator/capsmith/clusters",
        "runtime/src/capsmith_runtime",
        "schemas",
    )
    for folder in sorted((ROOT / parent).iterdir())
    if folder.is_dir() and folder.name != "__pycache__"
]
SCENARIOS = "scenarios"
"""The folder below tests/runtime with whole managers on the kit's fake API server."""
FOLDERS = [path.parent for path in sorted(TESTS.rglob("test_*.py")) if "expected" not in path.parts]


@pytest.mark.parametrize("package", [*PACKAGES, "blueprints", "examples"])
def test_each_package_has_an_entry(package: str) -> None:
    assert package in ENTRIES


def test_each_path_exists() -> None:
    named = [each for tests in ENTRIES.values() for each in (*tests.run, *tests.go)]

    assert [path for path in (*ENTRIES, *named) if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("folder", dict.fromkeys(FOLDERS), ids=lambda path: path.name)
def test_each_folder_of_tests_is_reached(folder: Path) -> None:
    named = {each for tests in ENTRIES.values() for each in (*tests.run, *tests.go)}
    reached = [path for path in named if _overlap(ROOT / path, folder)]

    assert reached, folder


def _overlap(path: Path, folder: Path) -> bool:
    """Report whether a path is the folder, above it or one of its files."""
    return folder.is_relative_to(path) or path.parent == folder


@pytest.mark.parametrize(
    ("paths", "tests"),
    [
        (["releasing/notes.py"], Needed(("tests/packaging",))),
        (["tests/unit/cli/test_signals.py"], Needed(("tests/unit/cli/test_signals.py",))),
        (["tests/unit/manifests/substitutions.py"], Needed(("tests/unit/manifests",))),
        (["tests/golden/acme/expected/README.md"], Needed(("tests/golden",))),
        (["tests/conftest.py"], Needed(("tests/meta",))),
        (["tests/invalid/aliases"], ENTRIES["tests/invalid"]),
        (
            ["releasing", "dev", "tests/meta/test_tasks.py"],
            Needed(("tests/packaging", "tests/meta")),
        ),
    ],
)
def test_a_change_selects_its_tests(paths: list[str], tests: Needed) -> None:
    assert select(paths, ENTRIES) == tests


def test_the_longest_path_counts() -> None:
    entries = {"a": Needed(("tests/a",)), "a/b": Needed(("tests/b",), ("tests/go",))}

    assert select(["a/b/c.py"], entries) == Needed(("tests/b",), ("tests/go",))
    assert select(["a/c.py", "a"], entries) == Needed(("tests/a",))
    with pytest.raises(LookupError, match=r"no entry for c\.py"):
        select(["c.py"], entries)


def test_the_page_describes_each_folder() -> None:
    text = (TESTS / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[?`(\w+)`", text, re.MULTILINE)
    folders = {path.name for path in TESTS.iterdir() if any(path.rglob("*.py"))}

    assert sorted(rows) == sorted(folders)


@pytest.mark.parametrize(
    ("tests", "packages"),
    [("unit", "generator/capsmith"), ("runtime", "runtime/src/capsmith_runtime")],
)
def test_folders_have_the_names_of_packages(tests: str, packages: str) -> None:
    folders = [path for path in (TESTS / tests).rglob("*") if has_tests(path)]
    names = [path.relative_to(TESTS / tests) for path in folders]
    names = [name for name in names if name.parts[0] != SCENARIOS]

    assert [str(name) for name in names if not (ROOT / packages / name).is_dir()] == []
