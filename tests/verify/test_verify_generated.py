"""What capsmith generates breaks nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.verify.places import run

GOLDEN = Path(__file__).parents[1] / "golden"
TREES = sorted(folder.parent.parent.name for folder in GOLDEN.glob("*/expected/config"))


@pytest.mark.parametrize("tree", TREES)
def test_generated_repositories(tree: str) -> None:
    expected = GOLDEN / tree / "expected"
    config = [path for path in (expected / "config", expected / "templates") if path.is_dir()]
    result = run(*map(str, config), str(expected / "metadata.yaml"))
    assert result.exit_code == 0, result.output
    assert " 0 break," in result.output
