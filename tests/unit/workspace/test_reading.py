"""Reading one input file, whatever it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from capsmith.errors import UnreadableInput
from capsmith.workspace.reading import MAX_BYTES, Limit, find_yaml_files, read_document
from tests.conftest import without_privileges


def refused(path: Path) -> str:
    with pytest.raises(UnreadableInput) as caught:
        read_document(path)
    assert caught.value.exit_code == 2
    assert caught.value.finding.location.file == str(path)
    assert caught.value.finding.hint
    return caught.value.finding.id


def test_text_is_read_without_its_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "provider.yaml"
    path.write_bytes("\ufeffname: é\n".encode())
    assert read_document(path) == "name: é\n"


def test_what_is_not_there(tmp_path: Path) -> None:
    assert refused(tmp_path / "provider.yaml") == "input-missing"
    assert refused(tmp_path / "missing" / "provider.yaml") == "input-missing"
    assert refused(tmp_path / ("x" * 5000)) == "input-unreadable"
    assert refused(Path("a\0b")) == "input-unreadable"


def test_a_symlink_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("password", encoding="utf-8")
    (tmp_path / "provider.yaml").symlink_to(tmp_path / "secret")
    (tmp_path / "broken").symlink_to(tmp_path / "nothing")
    assert refused(tmp_path / "provider.yaml") == "input-symlink"
    assert refused(tmp_path / "broken") == "input-symlink"


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert refused(tmp_path) == "input-not-a-file"
    assert refused(tmp_path / "pipe") == "input-not-a-file"
    assert refused(Path("/dev/zero")) == "input-not-a-file"


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "provider.yaml"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    assert refused(path) == "input-too-large"
    path.write_bytes(b"#" * MAX_BYTES)
    assert len(read_document(path)) == MAX_BYTES
    path.write_bytes(b"#" * (MAX_BYTES + 1))
    assert refused(path) == "input-too-large"


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ("name: é".encode("latin-1"), 1),
        ("a: 1\n".encode("utf-16"), 1),
        (b"a: 1\nb: \xed\xa0\x80\n", 2),
        (b"\x7fELF\n\x00\x00", 2),
    ],
    ids=["latin-1", "utf-16", "surrogate", "binary"],
)
def test_what_is_no_text(tmp_path: Path, data: bytes, line: int) -> None:
    path = tmp_path / "provider.yaml"
    path.write_bytes(data)
    assert refused(path) == "input-not-text"
    with pytest.raises(UnreadableInput) as caught:
        read_document(path)
    assert caught.value.finding.location.line == line


def test_a_file_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "provider.yaml"
    path.write_text("a: 1", encoding="utf-8")
    path.chmod(0)
    tmp_path.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    with without_privileges():
        assert refused(Path("provider.yaml")) == "input-unreadable"


def test_a_device_without_data_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file such as /proc/kmsg is regular, and gives nothing until there is something to read."""
    path = tmp_path / "provider.yaml"
    path.write_text("")
    reading, writing = os.pipe2(os.O_NONBLOCK)
    monkeypatch.setattr(os, "open", lambda *_: os.dup(reading))
    monkeypatch.setattr(os, "fstat", lambda _: path.stat())
    assert refused(path) == "input-unreadable"
    os.close(reading)
    os.close(writing)


def test_one_byte_order_mark_is_enough(tmp_path: Path) -> None:
    path = tmp_path / "provider.yaml"
    path.write_text("\ufeff\ufeffname: acme\n", encoding="utf-8")
    assert refused(path) == "input-not-text"


@pytest.mark.parametrize("mode", [0o000, 0o444], ids=["no rights", "names only"])
def test_a_folder_that_cannot_be_read_is_not_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    below = tmp_path / "below"
    below.mkdir()
    (below / "a.yaml").write_text("a: 1\n")
    (tmp_path / "b.yaml").write_text("b: 1\n")
    below.chmod(mode)
    tmp_path.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    try:
        with without_privileges(), pytest.raises(UnreadableInput) as caught:
            list(find_yaml_files(Path(), Limit(10, "too-many", "Use fewer.")))
    finally:
        below.chmod(0o755)
    assert caught.value.finding.id == "input-unreadable"
    assert caught.value.finding.location.file.startswith("below")
