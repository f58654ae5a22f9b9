"""What is generated is what is expected, byte for byte, and modes too."""

from __future__ import annotations

from pathlib import Path

import pytest

from capsmith import pipeline
from tests.golden.cases import BASE, Case, File, cases, difference, generated, kept, read

CASES = pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)


@CASES
def test_repository_is_as_expected(case: Case, tmp_path: Path) -> None:
    new = kept(generated(case, tmp_path / "repository"))

    changes = difference(read(case.expected), new)

    assert not changes, f"python -m tests.golden.update {case.name}\n{changes[:20_000]}"


@CASES
def test_copies_are_copies(case: Case, tmp_path: Path) -> None:
    files = generated(case, tmp_path / "repository")
    base = {path.removeprefix(BASE): file for path, file in files.items() if path.startswith(BASE)}

    assert base
    assert {path: file.text for path, file in base.items()} == {
        path: files[path].text for path in base
    }
    assert files["provider.yaml"] == File(case.spec.read_text(encoding="utf-8"), False)
    assert files[pipeline.SCHEMA_PATH].text == pipeline.schema_text()


@CASES
def test_second_run_changes_nothing(case: Case, tmp_path: Path) -> None:
    folder = tmp_path / "repository"
    before = generated(case, folder)
    stamps = {path: (folder / path).stat().st_mtime_ns for path in before}

    assert generated(case, folder) == before
    assert {path: (folder / path).stat().st_mtime_ns for path in before} == stamps


def test_no_expected_tree_is_left_over() -> None:
    with_trees = {path.parent.name for path in Path(__file__).parent.glob("*/expected")}

    assert with_trees == {case.name for case in cases()}
