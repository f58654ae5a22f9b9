"""What the author's code is given and may answer, in a generated repository."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.functional.conftest import Repository
from tests.golden.cases import EXAMPLES, Case, generated


def test_scripted_authors(tmp_path: Path, scratch: Path) -> None:
    folder = tmp_path / "repository"
    generated(Case("acme", EXAMPLES / "acme" / "provider.yaml"), folder)
    for script in Path(__file__).parent.glob("scripted_*.py"):
        shutil.copy(script, folder / "tests" / "generated" / f"test_{script.name}")

    output = Repository(folder, scratch).python(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/generated", "-k", "scripted"
    )

    assert " passed" in output
