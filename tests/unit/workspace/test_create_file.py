"""Files that must not exist before: `capsmith import` creates one."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from capsmith.workspace.files import create_file


@pytest.fixture(params=[None, errno.EPERM, errno.ENOTSUP])
def links(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run with hard links, and on file systems without them, such as FAT and many for networks."""
    code = request.param
    if code is None:
        return

    def fail(source: object, target: object) -> None:
        raise OSError(code, os.strerror(code), str(source), None, str(target))

    monkeypatch.setattr(os, "link", fail)


@pytest.mark.usefixtures("links")
def test_a_file_is_created(tmp_path: Path) -> None:
    create_file(tmp_path / "a.yaml", b"a: 1\n")
    assert [each.name for each in tmp_path.iterdir()] == ["a.yaml"]
    assert (tmp_path / "a.yaml").read_bytes() == b"a: 1\n"
    assert (tmp_path / "a.yaml").stat().st_mode & 0o777 == 0o644


@pytest.mark.usefixtures("links")
def test_an_existing_file_is_kept(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"mine")
    with pytest.raises(FileExistsError):
        create_file(tmp_path / "a.yaml", b"a: 1\n")
    assert [each.name for each in tmp_path.iterdir()] == ["a.yaml"]
    assert (tmp_path / "a.yaml").read_bytes() == b"mine"
