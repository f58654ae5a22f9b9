"""The Python of the pages, as parts of whole programs: types, and what they do.

A program is a file in programs/, with the block in place of its line ``# BLOCK``, at its
indentation.  All of them are tests of one generated repository.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from capsmith.commands.generate import generate
from tests.repositories import run_module
from tests.website.pages import Shown, declared

_HERE = Path(__file__).parent
_PROGRAMS = _HERE / "programs"
_BLOCKS = declared("program")
_LINE = "# BLOCK"


def program(shown: Shown) -> str:
    """Return the program of a block; the package is that of the repository."""
    text = (_PROGRAMS / f"{shown.entry['program']}.txt").read_text(encoding="utf-8")
    (line,) = (line for line in text.splitlines() if line.strip() == _LINE)
    indented = textwrap.indent(shown.block.text, line.removesuffix(_LINE))
    whole = text.replace(f"{line}\n", indented).replace("<package>", "cluster_api_provider_acme")
    # As an author's module has it, and generated ones do.
    docstring, rest = _docstring(whole)
    return f"{docstring}from __future__ import annotations\n\n{rest}"


def _docstring(text: str) -> tuple[str, str]:
    if not text.startswith('"""'):
        return "", text
    end = text.index('"""', 3) + 4
    return text[:end], text[end:]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository that has all programs among its tests."""
    folder = tmp_path_factory.mktemp("pages") / "acme"
    report = generate(_HERE / "acme.yaml", folder)
    assert report.exit_code == 0, report.findings
    for shown in _BLOCKS:
        _path(folder, shown).write_text(program(shown), encoding="utf-8")
    return folder


def _path(folder: Path, shown: Shown) -> Path:
    return folder / "tests" / f"test_page_{shown.entry['program'].replace('-', '_')}.py"


def _paths(folder: Path) -> list[str]:
    return [str(_path(folder, shown).relative_to(folder)) for shown in _BLOCKS]


def test_each_program_has_one_block() -> None:
    used = sorted(shown.entry["program"] for shown in _BLOCKS)
    assert used == sorted(path.stem for path in _PROGRAMS.glob("*.txt"))


def test_types(repository: Path) -> None:
    done = run_module(repository, "mypy", *_paths(repository))
    assert done.returncode == 0, done.stdout + done.stderr


def test_programs(repository: Path) -> None:
    done = run_module(repository, "pytest", "-q", "-p", "no:cacheprovider", *_paths(repository))
    assert done.returncode == 0, done.stdout + done.stderr
