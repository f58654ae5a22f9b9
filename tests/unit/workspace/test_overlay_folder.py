"""Reading the folder of an overlay, whatever is in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from capsmith.errors import UnreadableInput
from capsmith.workspace.reading import MOST_BYTES, MOST_FILES, locate_overlay, read_overlay
from tests.conftest import without_privileges


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "over/project/docs").mkdir(parents=True)
    (tmp_path / "over/project/Makefile.jinja").write_bytes(b"all:\r\n\ttrue\r\n")
    (tmp_path / "over/project/docs/a.md.jinja").write_text("a")
    return tmp_path / "over"


def ids(folder: Path) -> set[tuple[str, str]]:
    _, found = read_overlay(folder)
    return {(Path(each.location.file).name, each.id) for each in found}


def test_texts_by_path_whatever_git_did_to_line_ends(folder: Path) -> None:
    (folder / "README.md").write_text("what this is")
    (folder / "LICENSE").write_text("MIT")
    (folder / ".git").mkdir()
    (folder / ".git/config").write_text("x")
    (folder / "project/.hidden.jinja").write_text("h")
    assert read_overlay(folder) == (
        {
            "project/.hidden.jinja": "h",
            "project/Makefile.jinja": "all:\n\ttrue\n",
            "project/docs/a.md.jinja": "a",
        },
        (),
    )


def test_what_is_no_text_of_its_own_is_refused_all_at_once(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets/key").write_text("key")
    (folder / "project/link.jinja").symlink_to(tmp_path / "secret")
    (folder / "project/folder").symlink_to(tmp_path / "secrets")
    (folder / "project/loop").symlink_to(folder)
    (folder / "project/gone.jinja").symlink_to(tmp_path / "gone")
    (folder / "project/large.jinja").write_text("x" * (MOST_BYTES + 1))
    (folder / "project/binary.jinja").write_bytes(b"\xff\xfe")
    (folder / "project/zero.jinja").write_bytes(b"a\0b")
    (folder / "project/a b.jinja").write_text("x")
    os.mkfifo(folder / "project/pipe.jinja")
    assert ids(folder) == {
        ("link.jinja", "input-symlink"),
        ("folder", "input-symlink"),
        ("loop", "input-symlink"),
        ("gone.jinja", "input-symlink"),
        ("large.jinja", "input-too-large"),
        ("binary.jinja", "input-not-text"),
        ("zero.jinja", "input-not-text"),
        ("a b.jinja", "overlay-path"),
        ("pipe.jinja", "input-not-a-file"),
    }
    assert not any("secret" in text for text in read_overlay(folder)[0].values())


def test_there_is_an_end_to_files_and_folders(folder: Path) -> None:
    deep = folder / "project"
    for _ in range(30):
        deep = deep / "d"
    deep.mkdir(parents=True)
    (deep / "x.jinja").write_text("x")
    assert {id for _, id in ids(folder)} == {"input-not-a-file"}
    for number in range(MOST_FILES):
        (folder / f"project/{number}.jinja").write_text("")
    assert read_overlay(folder)[0] == {}
    assert {id for _, id in ids(folder)} == {"overlay-too-large"}


@pytest.mark.parametrize("name", ["gone", "file", "link"])
def test_the_folder_has_to_be_one(folder: Path, name: str) -> None:
    (folder / "file").write_text("x")
    (folder / "link").symlink_to(folder)
    with pytest.raises(UnreadableInput) as caught:
        read_overlay(folder / name)
    assert caught.value.finding.id == "overlay-not-a-folder"


@pytest.mark.parametrize(
    "named", ["../over", "/etc", "a/../over", "link", "link/project", ".git/over", "file/x"]
)
def test_a_folder_that_a_description_names_is_in_the_repository(folder: Path, named: str) -> None:
    (folder / "link").symlink_to(folder)
    (folder / "file").write_text("x")
    assert locate_overlay(folder, "project/docs") == folder / "project/docs"
    with pytest.raises(UnreadableInput) as caught:
        read_overlay(locate_overlay(folder, named))
    assert caught.value.finding.id == "overlay-not-a-folder"


def test_a_folder_that_may_not_be_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.chmod(0o755)
    folder.parent.chmod(0o755)
    (folder / "project/docs").chmod(0)
    monkeypatch.chdir(folder.parent)
    with without_privileges(), pytest.raises(UnreadableInput) as caught:
        read_overlay(Path("over"))
    assert caught.value.finding.id == "input-unreadable"
