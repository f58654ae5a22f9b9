"""The example for libvirt: its own tests need a C library, but its code can be checked without.

With CAPSMITH_VM=1 it is among the other examples, and all of that is run.
"""

from __future__ import annotations

from pathlib import Path

from tests.functional.conftest import Repository
from tests.golden.cases import EXAMPLES, Case, generated


def test_types_and_lint(tmp_path: Path, scratch: Path) -> None:
    folder = tmp_path / "repository"
    generated(Case("libvirt", EXAMPLES / "libvirt" / "provider.yaml"), folder)
    repository = Repository(folder, scratch)

    assert "Success" in repository.python("-m", "mypy")
    repository.python("-m", "ruff", "check", ".")
