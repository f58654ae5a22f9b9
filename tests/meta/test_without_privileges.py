"""Tests can run as an unprivileged user for a while."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.conftest import without_privileges


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has privileges to give up")
def test_only_the_calling_thread_loses_privileges(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    (tmp_path / "file").write_text("")
    with ThreadPoolExecutor(1) as other:
        other.submit(os.getpid).result()  # a thread takes over the rights of who starts it
        with without_privileges():
            with pytest.raises(PermissionError):
                list(tmp_path.iterdir())
            assert other.submit(os.listdir, tmp_path).result() == ["file"]
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
