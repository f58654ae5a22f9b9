"""The tests' own way to be nobody for a while."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from tests.conftest import without_privileges


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has privileges to give up")
def test_only_the_thread_that_asks_becomes_nobody(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    (tmp_path / "file").write_text("")
    seen: list[str] = []
    other = threading.Thread(target=lambda: seen.extend(p.name for p in tmp_path.iterdir()))
    with without_privileges():
        with pytest.raises(PermissionError):
            list(tmp_path.iterdir())
        other.start()
        other.join()
    assert seen == ["file"]
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
