"""Writes are contained and take effect as one, even when the run dies in the middle."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from capsmith.errors import Refused
from capsmith.workspace.repository import Change, Repository


class Died(Exception):
    """Stands for the process being killed: nothing after it is cleaned up by capsmith."""


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".capsmith" not in path.parts
    }


def change(text: str, *paths: str, remove: tuple[str, ...] = ()) -> Change:
    result = Change()
    for path in paths:
        result.write(path, text)
    for path in remove:
        result.remove(path)
    return result


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


@pytest.mark.parametrize("dies_at", range(1, 7))
def test_a_killed_run_leaves_the_old_tree_or_is_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dies_at: int
) -> None:
    repository = Repository(tmp_path)
    (tmp_path / "mine").write_text("mine")
    repository.apply(change("old", "a", "b", "gone"))
    old = contents(tmp_path)
    calls = 0
    replace = os.replace

    def dying_replace(source: object, target: object) -> None:
        nonlocal calls
        calls += 1
        if calls == dies_at:
            raise Died
        replace(source, target)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "replace", dying_replace)
    try:
        repository.apply(change("new", "a", "b", "c", remove=("gone",)))
        finished = True
    except Died:
        finished = False
    monkeypatch.setattr(os, "replace", replace)
    new = {"a": "new", "b": "new", "c": "new", "mine": "mine"}
    pending = (tmp_path / ".capsmith/pending.json").exists()
    assert finished or pending or contents(tmp_path) == old
    assert repository.complete_pending() is pending
    assert contents(tmp_path) == (new if finished or pending else old)
    assert not (tmp_path / ".capsmith/stage").exists()


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
        repository.read(path)


@pytest.mark.parametrize("path", ["../out", "/etc/passwd", "a/../../b", "a//b", "", ".", "a\x00b"])
def test_paths_that_leave_the_folder_do_not_exist(path: str) -> None:
    with pytest.raises(ValueError, match="RelativePath"):
        Change().write(path, "x")
