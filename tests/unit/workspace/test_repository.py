"""Writes are contained and take effect as one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from capsmith.errors import DiskError, Refused, UnreadableInput
from capsmith.workspace.hold import convert_disk_errors, hold_folder
from capsmith.workspace.repository import Change, Repository
from tests.unit.workspace.changing import change, contents


def test_a_new_folder_appears_whole(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "repo"
    Repository(target).apply(change("new", "a", "b/c"))
    assert contents(target) == {"a": "new", "b/c": "new"}
    assert [entry.name for entry in target.parent.iterdir()] == ["repo"]


def test_modes_do_not_depend_on_the_umask(tmp_path: Path) -> None:
    previous = os.umask(0o077)
    try:
        files = change("x", "plain")
        files.write("script", "x", executable=True)
        Repository(tmp_path / "repo").apply(files)
    finally:
        os.umask(previous)
    assert (tmp_path / "repo/plain").stat().st_mode & 0o777 == 0o644
    assert (tmp_path / "repo/script").stat().st_mode & 0o777 == 0o755


def test_removal_takes_empty_folders_along_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/old").write_text("")
    (tmp_path / "a/mine").write_text("")
    Repository(tmp_path).apply(change("", remove=("a/b/old",)))
    assert contents(tmp_path) == {"a/mine": ""}
    assert not (tmp_path / "a/b").exists()


@pytest.mark.parametrize("path", ["link/file", "link"])
def test_symlinks_are_not_followed(tmp_path: Path, path: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link").symlink_to(outside)
    repository = Repository(inside)
    with pytest.raises(Refused) as caught:
        repository.apply(change("x", "other", path))
    assert caught.value.finding.id == "output-not-regular"
    assert list(outside.iterdir()) == []
    assert [entry.name for entry in inside.iterdir()] == ["link"]
    with pytest.raises(Refused):
        repository.read_text(path)


@pytest.mark.parametrize("path", ["../out", "/etc/passwd", "a/../../b", "a//b", "", ".", "a\x00b"])
def test_paths_that_leave_the_folder_do_not_exist(path: str) -> None:
    with pytest.raises(ValueError, match="RelativePath"):
        Change().write(path, "x")


def test_permissions_stay_unless_they_are_given(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("old")
    (tmp_path / "mine").chmod(0o750)
    files = Change()
    files.write("mine", "new", executable=None)
    files.write("fresh", "new", executable=None)
    Repository(tmp_path).apply(files)
    assert (tmp_path / "mine").stat().st_mode & 0o777 == 0o750
    assert (tmp_path / "fresh").stat().st_mode & 0o777 == 0o644


def test_an_empty_folder_stays_the_same_folder(tmp_path: Path) -> None:
    target = tmp_path / "repo"
    target.mkdir()
    link = tmp_path / "link"
    link.symlink_to(target)
    inode = target.stat().st_ino
    Repository(link).apply(change("new", "a"))
    assert contents(target) == {"a": "new"}
    assert target.stat().st_ino == inode
    assert not (target / ".capsmith").exists()


def test_a_file_in_the_place_of_a_folder_is_refused_before_anything_is_done(tmp_path: Path) -> None:
    (tmp_path / "docs").write_text("mine")
    with pytest.raises(Refused) as caught:
        Repository(tmp_path).apply(change("new", "a", "docs/b"))
    assert caught.value.finding.location.file == "docs/b"
    assert contents(tmp_path) == {"docs": "mine"}


def test_a_folder_created_by_another_process_is_not_touched(tmp_path: Path) -> None:
    target = tmp_path / "repo"
    repository = Repository(target)
    with repository.hold():
        Repository(target).apply(change("theirs", "a"))
        assert repository.read_text("a") is None
        with pytest.raises(Refused) as caught:
            repository.apply(change("new", "a"))
    assert caught.value.finding.id == "output-busy"
    assert contents(target) == {"a": "theirs"}
    assert [entry.name for entry in tmp_path.iterdir()] == ["repo"]


def test_a_folder_is_held_by_one_run_at_a_time(tmp_path: Path) -> None:
    with hold_folder(tmp_path), pytest.raises(Refused) as caught, hold_folder(tmp_path):
        pass
    assert caught.value.finding.id == "output-busy"
    with hold_folder(tmp_path):
        pass


@pytest.mark.parametrize("path", [".git/config", "a/.GIT/hooks/pre-commit"])
def test_nothing_of_gits_is_touched(tmp_path: Path, path: str) -> None:
    with pytest.raises(Refused):
        Repository(tmp_path).apply(change("x", path))
    with pytest.raises(Refused):
        Repository(tmp_path).apply(change("x", remove=(path,)))


def test_the_authors_files_may_be_anything(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    (tmp_path / "folder").mkdir()
    paths = ["link", "latin", "folder", "none"]
    repository = Repository(tmp_path)
    found = repository.read_existing(paths, theirs=paths)
    assert found == {"link": b"", "latin": b"caf\xe9", "folder": b""}
    for path in ("link", "folder"):
        with pytest.raises(Refused):
            repository.read_existing([path])
    with pytest.raises(UnreadableInput):
        repository.read_text("latin")


def test_a_pipe_in_the_place_of_the_stage_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".capsmith").mkdir()
    os.mkfifo(tmp_path / ".capsmith" / "stage")
    with pytest.raises(Refused, match="not a folder"):
        Repository(tmp_path).apply(change("new", "a"))
    with pytest.raises(Refused, match="not a folder"):
        Repository(tmp_path).complete_pending()
    assert not (tmp_path / "a").exists()


def test_a_rename_that_fails_names_the_file_of_the_repository(tmp_path: Path) -> None:
    staged, target = tmp_path / "staged", tmp_path / "docs"
    staged.write_text("new")
    (target / "folder").mkdir(parents=True)
    with pytest.raises(DiskError) as caught, convert_disk_errors(tmp_path):
        os.replace(staged, target)
    assert caught.value.finding.location.file == str(target)
