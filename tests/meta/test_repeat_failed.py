"""CI runs a few failed tests once more, and is not green because of that alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.checkout import ROOT

_FLAKY = """
from pathlib import Path

def test_fails_once():
    mark = Path(__file__).with_suffix(".ran")
    ran = mark.exists()
    mark.touch()
    assert ran
"""
_BROKEN = """
import pytest

@pytest.mark.parametrize("number", range({}))
def test_it(number):
    assert 0
"""


def _run_twice(folder: Path, **modules: str) -> subprocess.CompletedProcess[str]:
    (folder / "pytest.ini").touch()
    (folder / "test_fine.py").write_text("def test_it(): pass")
    for name, text in modules.items():
        (folder / f"test_{name}.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q"]
    assert _run(folder, *command).returncode == 1
    return _run(folder, str(ROOT / ".ci/repeat-failed"), *command)


def _run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    plain = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        command, cwd=folder, env=plain, check=False, capture_output=True, text=True
    )


def test_a_test_that_passes_the_second_time_is_named(tmp_path: Path) -> None:
    done = _run_twice(tmp_path, flaky=_FLAKY)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout, "only the one that failed"
    assert done.stdout.splitlines()[-1] == "test_flaky.py::test_fails_once"


def test_what_is_broken_fails_again(tmp_path: Path) -> None:
    done = _run_twice(tmp_path, broken=_BROKEN.format(1))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed" in done.stdout


def test_one_broken_test_beside_a_flaky_one_fails(tmp_path: Path) -> None:
    done = _run_twice(tmp_path, flaky=_FLAKY, broken=_BROKEN.format(1))
    assert done.returncode == 1, done.stdout + done.stderr


def test_several_failures_have_one_cause(tmp_path: Path) -> None:
    done = _run_twice(tmp_path, broken=_BROKEN.format(4))
    assert done.returncode == 1
    assert done.stderr == "4 tests failed: too many for a rare race\n"
    assert "once more" not in done.stdout
