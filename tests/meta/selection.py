"""Which tests a change needs, by tests/map.yaml: ``./dev test --for PATH...``.

``python -m tests.meta.selection PATH...`` prints the arguments for pytest, and on standard error
the tests that need Go.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import yaml

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
MAP = TESTS / "map.yaml"


@dataclass(frozen=True)
class Needed:
    """Files and folders of tests, relative to the root of this repository."""

    run: tuple[str, ...]
    go: tuple[str, ...] = ()
    """What a change needs besides, and Go builds the programs for."""

    def __add__(self, other: Needed) -> Needed:
        return Needed(_merge(self.run + other.run), _merge(self.go + other.go))


def read_map() -> dict[str, Needed]:
    """Return the tests of each path in tests/map.yaml."""
    entries = yaml.safe_load(MAP.read_text(encoding="utf-8"))
    return {path: _tests(entry) for path, entry in entries.items()}


def _tests(entry: Mapping[str, list[str]]) -> Needed:
    run, go = ([f"tests/{each}" for each in entry.get(key, [])] for key in ("run", "go"))
    return Needed(tuple(run), tuple(go))


def select(paths: Iterable[str], entries: Mapping[str, Needed]) -> Needed:
    """Return the tests that a change of these paths needs; none of them twice.

    Raises LookupError for a path that no entry is for.
    """
    found = Needed(())
    for path in paths:
        found += _tests_of(PurePosixPath(path), entries)
    return found


def _tests_of(path: PurePosixPath, entries: Mapping[str, Needed]) -> Needed:
    entry = next((str(each) for each in (path, *path.parents) if str(each) in entries), "")
    if entry == "tests" and len(path.parts) > 2:
        return Needed((_own_tests(path),))
    if not entry:
        raise LookupError(f"{MAP.relative_to(ROOT)} has no entry for {path}")
    return entries[entry]


def _own_tests(path: PurePosixPath) -> str:
    """Return a file of tests itself; for anything else the nearest folder that has some."""
    if path.name.startswith("test_") and path.suffix == ".py":
        return str(path)
    folders = [path, *path.parents][: len(path.parts) - 1]
    return str(next((each for each in folders if has_tests(ROOT / each)), folders[-1]))


def has_tests(folder: Path) -> bool:
    """Report whether a folder has test files of its own."""
    return any(folder.glob("test_*.py"))


def _merge(paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return paths in their order, without those at or below another one."""
    different = dict.fromkeys(paths)
    return tuple(
        each
        for each in different
        if not any(str(parent) in different for parent in PurePosixPath(each).parents)
    )


def main(arguments: list[str]) -> int:
    if not arguments:
        sys.exit("name the paths that you have changed")
    paths = [Path(each).resolve() for each in arguments]
    outside = [str(path) for path in paths if not path.is_relative_to(ROOT)]
    if outside:
        sys.exit(f"not in this repository: {', '.join(outside)}")
    try:
        tests = select((path.relative_to(ROOT).as_posix() for path in paths), read_map())
    except LookupError as error:
        sys.exit(str(error))
    if tests.go:
        print("needs Go:  ./dev test", *tests.go, file=sys.stderr)
    print(*tests.run)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
