"""A release is refused where two places of the repository disagree on a version."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from capsmith import __version__
from releasing.notes import release_notes
from releasing.versions import GENERATOR, LIBRARY, PROJECTS, find_disagreements, own_version
from tests.packaging.conftest import ROOT

READ = (
    GENERATOR,
    LIBRARY,
    *PROJECTS,
    "README.md",
    "CHANGELOG.md",
    "action.yml",
    "dev",
    ".ci/run",
    ".github/workflows/ci.yaml",
    ".github/workflows/release.yaml",
    "docs/how-to/verify.md",
    "docs/how-to/contract-upgrade.md",
    "runtime/src/capsmith_runtime/slices.yaml",
    "schemas/compatibility.yaml",
)
ENTRY = "## [Unreleased]\n"
RELEASED = f"## [Unreleased]\n\n## [{__version__}] - 2030-01-02\n"
LONG = "- A line that is long enough to be no chance repetition, once and once again.\n"

# file, what is there, what replaces it, what is reported
PLANTED = {
    "runtime": (LIBRARY, f'"{__version__}"', '"9.9.9"', f"{LIBRARY}: 9.9.9"),
    "output in README.md": ("README.md", f"runtime: {__version__}", "runtime: 0.0.9", "README.md:"),
    "action in docs": (
        "docs/how-to/verify.md",
        f"/capsmith@v{__version__}",
        "/capsmith@v0.0.9",
        "docs/how-to/verify.md:",
    ),
    "hook in docs": (
        "docs/how-to/verify.md",
        f"rev: v{__version__}",
        "rev: v0.0.9",
        "docs/how-to/verify.md:",
    ),
    "output in docs": (
        "docs/how-to/contract-upgrade.md",
        f"running {__version__}",
        "running 0.0.9",
        "docs/how-to/contract-upgrade.md:",
    ),
    "Python of capsmith": (
        "pyproject.toml",
        'requires-python = ">=3.11"',
        'requires-python = ">=3.10"',
        "pyproject.toml: requires-python is >=3.10",
    ),
    "Python of the library": (
        "runtime/pyproject.toml",
        'requires-python = ">=3.11"',
        'requires-python = ">=3.12"',
        "runtime/pyproject.toml: requires-python is >=3.12",
    ),
    "Python of ruff": ("pyproject.toml", '= "py311"', '= "py312"', "pyproject.toml: Python 312"),
    "Python of ./dev": ("dev", "(3, 11)", "(3, 10)", "dev: Python 3, 10"),
    "Python of CI": (".ci/run", "(3, 11)", "(3, 12)", ".ci/run: Python 3, 12"),
    "Python in README.md": ("README.md", "Python 3.11", "Python 3.9", "README.md: Python 3.9"),
    "Python of the table": (
        "schemas/compatibility.yaml",
        'release: "3.11"',
        'release: "3.10"',
        "requires-python is >=3.11, and schemas/compatibility.yaml has 3.10",
    ),
    "no Python": (
        ".github/workflows/release.yaml",
        'python-version: "3.11"',
        "python-version-file: pyproject.toml",
        ".github/workflows/release.yaml: no Python version",
    ),
    "requirement of a slice": (
        "runtime/src/capsmith_runtime/slices.yaml",
        "cryptography>=44",
        "cryptography>=43",
        "cryptography>=43 is in one of them only",
    ),
    "minimum of an extra": (
        "pyproject.toml",
        '"lightkube>=1.0,<2"',
        '"lightkube>=0.17,<2"',
        "pyproject.toml: lab has lightkube from 0.17",
    ),
    "core of the action": ("action.yml", "core=v1.10..", "core=v1.9..", "action.yml: target is"),
    "a later section": (
        "CHANGELOG.md",
        ENTRY,
        f"{ENTRY}\n## [9.9.9] - 2030-01-02\n\n- Later.\n",
        "[9.9.9] is later than the package",
    ),
    "a section without a date": (
        "CHANGELOG.md",
        ENTRY,
        f"{ENTRY}\n## [{__version__}]\n",
        "has no date",
    ),
    "an empty section": (
        "CHANGELOG.md",
        ENTRY,
        f"{ENTRY}\n- New.\n\n## [{__version__}] - 2030-01-02\n\n## [0.0.1] - 2029-01-02\n",
        f"[{__version__}] is empty",
    ),
    "sections in the wrong order": (
        "CHANGELOG.md",
        ENTRY,
        f"{ENTRY}\n## [0.0.1] - 2029-01-02\n\n- Old.\n\n## [{__version__}] - 2030-01-02\n",
        "has to stand above [0.0.1]",
    ),
    "a doubled heading": ("CHANGELOG.md", ENTRY, f"{ENTRY}\n### Added\n", "### Added"),
    "a doubled line": ("CHANGELOG.md", ENTRY, f"{ENTRY}\n{LONG}{LONG}", "this line 2 times"),
    "nothing unreleased": ("CHANGELOG.md", ENTRY, "", "the first section has to be [Unreleased]"),
}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a copy of the files that are compared."""
    for path in READ:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    return tmp_path


def _edit(root: Path, path: str, old: str, new: str) -> None:
    text = (root / path).read_text(encoding="utf-8")
    assert old in text
    (root / path).write_text(text.replace(old, new, 1), encoding="utf-8")


def test_this_repository_agrees() -> None:
    assert own_version(ROOT) == __version__
    assert list(find_disagreements(ROOT)) == []


def test_the_copy_agrees(copy: Path) -> None:
    assert list(find_disagreements(copy)) == []


@pytest.mark.parametrize("case", PLANTED)
def test_a_planted_disagreement_is_reported(copy: Path, case: str) -> None:
    path, old, new, expected = PLANTED[case]
    _edit(copy, path, old, new)

    assert [line for line in find_disagreements(copy) if expected in line]


def test_a_tag_needs_its_version(copy: Path) -> None:
    _edit(copy, "CHANGELOG.md", ENTRY, RELEASED)

    assert list(find_disagreements(copy, f"v{__version__}")) == []
    (line,) = find_disagreements(copy, "v9.9.9")
    assert line == f"{GENERATOR}: {__version__} is not the version of the tag v9.9.9"


def test_a_tag_needs_a_section_that_has_everything(copy: Path) -> None:
    tag = f"v{__version__}"
    (line,) = find_disagreements(copy, tag)
    assert f"there is no section [{__version__}]" in line

    _edit(copy, "CHANGELOG.md", ENTRY, RELEASED.replace("\n\n", "\n\n- Late.\n\n", 1))
    (line,) = find_disagreements(copy, tag)
    assert line.endswith(f"[Unreleased] has entries that {__version__} lacks")


def test_pages_that_name_no_version_any_more(copy: Path) -> None:
    _edit(copy, "README.md", f"runtime: {__version__}", "the runtime")
    shutil.rmtree(copy / "docs")

    (line,) = find_disagreements(copy)
    assert line.startswith("README.md, docs: no page names the version")


def test_notes_are_those_of_the_version(copy: Path) -> None:
    unreleased = release_notes(copy, __version__)
    assert unreleased.startswith("### Added\n")

    _edit(copy, "CHANGELOG.md", ENTRY, f"{RELEASED}\n- The release.\n\n## [0.0.1] - 2029-01-02\n")
    assert release_notes(copy, __version__) == "- The release.\n"
