"""What the author of a bootstrap provider is given and may answer, in a generated repository."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.functional.conftest import Repository
from tests.golden.cases import EXAMPLES, Case, generated


def test_scripted_bootstrap_authors(tmp_path: Path, scratch: Path) -> None:
    """Proves: BC-12, BC-14, BC-16, MP-13, MP-19."""
    folder = tmp_path / "repository"
    generated(Case("bootstrap", EXAMPLES / "bootstrap" / "provider.yaml"), folder)
    script = Path(__file__).parent / "bootstrap_script.py"
    shutil.copy(script, folder / "tests" / "generated" / "test_bootstrap_script.py")

    output = Repository(folder, scratch).python(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/generated/test_bootstrap_script.py"
    )

    assert " passed" in output
