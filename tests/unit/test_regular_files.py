"""Files whose paths others chose are read without waiting for a pipe or a device."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from capsmith.regular_files import NotRegularError, read_regular, read_regular_text


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text\n")
    (tmp_path / "link").symlink_to("file")
    assert read_regular(tmp_path / "link") == b"text\n"
    assert read_regular_text(tmp_path / "link", 5) == "text\n"


def test_only_one_byte_above_the_limit_is_read(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        file.truncate(1 << 40)  # takes no space
    assert len(read_regular(tmp_path / "file", 5_000_000)) == 5_000_001
    with pytest.raises(OSError, match="more than 10 bytes"):
        read_regular_text(tmp_path / "file", 10)


def test_what_is_no_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        for name in ("pipe", "/dev/zero", "."):
            with pytest.raises(NotRegularError):
                read_regular(Path(name))
        with pytest.raises(OSError, match="socket"):
            read_regular(Path("socket"))
