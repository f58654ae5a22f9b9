"""What capsmith generates breaks nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.cases import cases
from tests.verify.places import run

TREES = {case.name: case.expected for case in cases() if (case.expected / "config").is_dir()}


@pytest.mark.parametrize("expected", TREES.values(), ids=TREES)
def test_generated_repositories(expected: Path) -> None:
    config = [path for path in (expected / "config", expected / "templates") if path.is_dir()]
    result = run(*map(str, config), str(expected / "metadata.yaml"))
    assert result.exit_code == 0, result.output
    assert " 0 break," in result.output
