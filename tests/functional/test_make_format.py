"""``make format`` of a generated repository runs black even if ruff cannot correct an error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.golden.cases import EXAMPLES, Case, generated

UNTIDY = 'import sys\nimport os\n\nname = "{}"\nprint( sys, os, name )\n'


@pytest.mark.slow
def test_format_runs_black_after_findings_of_ruff(tmp_path: Path) -> None:
    repository = tmp_path / "acme"
    generated(Case("acme", EXAMPLES / "acme" / "provider.yaml"), repository)
    module = repository / "src" / "cluster_api_provider_acme" / "untidy.py"
    module.write_text(UNTIDY.format("x" * 120), encoding="utf-8")

    subprocess.run(["make", "format", f"PYTHON={sys.executable}"], cwd=repository, check=True)

    assert module.read_text(encoding="utf-8") == (
        f'import os\nimport sys\n\nname = "{"x" * 120}"\nprint(sys, os, name)\n'
    )
