"""The same bytes whatever the hash seed, folder, umask, locale, time zone and cache are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.golden.cases import Case, cases, difference, read

ENVIRONMENTS = {
    "one": {"PYTHONHASHSEED": "1", "LC_ALL": "C", "TZ": "UTC", "CAPSMITH_CACHE": ""},
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


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_same_bytes_everywhere(case: Case, tmp_path: Path) -> None:
    elsewhere = tmp_path / "a folder with blanks"
    elsewhere.mkdir()
    _run(case.spec, tmp_path / "first", 0o022, tmp_path, ENVIRONMENTS["one"])
    cache = {"CAPSMITH_CACHE": str(tmp_path / "cache"), **ENVIRONMENTS["other"]}
    for name in ("cold", "warm"):  # the cache is empty, then full
        _run(case.spec, elsewhere / name, 0o077, elsewhere, cache)

    first = read(tmp_path / "first")
    assert difference(first, read(elsewhere / "cold")) == ""
    assert difference(first, read(elsewhere / "warm")) == ""
    modes = {(tmp_path / "first" / path).stat().st_mode & 0o777 for path in first}
    assert modes == {
        (elsewhere / "cold" / path).stat().st_mode & 0o777 for path in first
    }, "modes come from the tree, not from the umask"
