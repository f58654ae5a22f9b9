"""What the author's code is given and may answer, in a generated repository."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.functional.conftest import Repository
from tests.golden.cases import EXAMPLES, Case, generated


def test_scripted_authors(tmp_path: Path, scratch: Path) -> None:
    folder = tmp_path / "repository"
    generated(Case("acme", EXAMPLES / "acme" / "provider.yaml"), folder)
    script = Path(__file__).with_name("scripted_author.py")
    shutil.copy(script, folder / "tests" / "generated" / "test_scripted_author.py")

    output = Repository(folder, scratch).python(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/generated/test_scripted_author.py"
    )

    assert " passed" in output
