"""The same bytes whatever the hash seed, folder, umask, locale, time zone and cache are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.exhaustive import exhaustive
from tests.golden.cases import Case, cases, generated
from tests.golden.files import difference, read

_CHANGING = ("everything", "extension", "managed", "two-contracts")
"""Cases whose files have come from each renderer: the others seldom find more."""
CASES = [case if case.name in _CHANGING else exhaustive(case)[0] for case in cases()]

ENVIRONMENTS = {
    "one": {"PYTHONHASHSEED": "1", "LC_ALL": "C", "TZ": "UTC"},
    "other": {
        "PYTHONHASHSEED": "4242",
        "LC_ALL": "tr_TR.UTF-8",
        "TZ": "Pacific/Kiritimati",
        "COLUMNS": "40",
        "PYTHONOPTIMIZE": "1",
    },
}


def _run(spec: Path, output: Path, umask: int, cwd: Path, extra: dict[str, str]) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **extra}
    subprocess.run(
        [sys.executable, "-m", "capsmith", "generate", str(spec), "-o", str(output)],
        env=environment,
        cwd=cwd,
        umask=umask,
        check=True,
        capture_output=True,
        timeout=900,
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_same_bytes_everywhere(case: Case, tmp_path: Path) -> None:
    """Also a second run, in another environment and with a full cache, changes nothing."""
    here = tmp_path / "here"
    first = generated(case, here)
    elsewhere = tmp_path / "a folder with blanks"
    elsewhere.mkdir()
    there = elsewhere / "there"
    cache = {"CAPSMITH_CACHE": str(tmp_path / "cache")}

    _run(case.spec, there, 0o077, elsewhere, {**ENVIRONMENTS["other"], **cache})
    assert difference(first, read(there)) == ""
    assert {path: _mode(there / path) for path in first} == {
        path: _mode(here / path) for path in first
    }, "modes come from the tree, not from the umask"

    stamps = {path: (there / path).stat().st_mtime_ns for path in first}
    _run(case.spec, there, 0o022, tmp_path, {**ENVIRONMENTS["one"], **cache})
    assert difference(first, read(there)) == ""
    assert {path: (there / path).stat().st_mtime_ns for path in first} == stamps


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777
