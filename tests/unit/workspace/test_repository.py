"""Writes are contained and take effect as one, even when the run dies in the middle."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from capsmith.errors import Refused, UnreadableInput
from capsmith.workspace.hold import held
from capsmith.workspace.journal import Journal
from capsmith.workspace.repository import Change, Repository


class Died(Exception):
    """Stands for the process being killed: nothing after it is cleaned up by capsmith."""


def dying(*arguments: object, **options: object) -> None:
    raise Died


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


def test_permissions_stay_unless_they_are_given(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("old")
    (tmp_path / "mine").chmod(0o750)
    files = Change()
    files.write("mine", "new", executable=None)
    files.write("fresh", "new", executable=None)
    Repository(tmp_path).apply(files)
    assert (tmp_path / "mine").stat().st_mode & 0o777 == 0o750
    assert (tmp_path / "fresh").stat().st_mode & 0o777 == 0o644


def interrupted(folder: Path, monkeypatch: pytest.MonkeyPatch, change: Change) -> Repository:
    """A repository whose change is pending, and of which nothing was moved yet."""
    repository = Repository(folder)
    with monkeypatch.context() as patch:
        patch.setattr(Repository, "complete_pending", lambda self: False)
        repository.apply(change)
    return repository


def test_an_edit_after_an_interruption_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("old")
    repository = interrupted(tmp_path, monkeypatch, change("new", "a", "b"))
    (tmp_path / "a").write_text("mine")
    with pytest.raises(Refused) as caught:
        repository.complete_pending()
    assert caught.value.finding.location.file == "a"
    assert contents(tmp_path) == {"a": "mine"}
    (tmp_path / "a").unlink()
    assert repository.complete_pending()
    assert contents(tmp_path) == {"a": "new", "b": "new"}


def test_a_removal_is_completed_when_its_folder_has_gone_already(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/old").write_text("")
    repository = interrupted(tmp_path, monkeypatch, change("", "c", remove=("a/b/old",)))
    (tmp_path / "a/b/old").unlink()
    (tmp_path / "a/b").rmdir()
    assert repository.complete_pending()
    assert contents(tmp_path) == {"c": ""}
    assert not (tmp_path / "a").exists()


def test_an_interrupted_change_can_be_undone_instead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deep").mkdir()
    for name in ("a", "deep/gone", "mine"):
        (tmp_path / name).write_text("old")
    (tmp_path / "a").chmod(0o600)
    repository = interrupted(
        tmp_path, monkeypatch, change("new", "a", "b/c", remove=("deep/gone",))
    )
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", dying)
        with pytest.raises(Died):
            repository.complete_pending()
    assert contents(tmp_path) == dict.fromkeys(("a", "b/c"), "new") | {
        "deep/gone": "old",
        "mine": "old",
    }
    assert repository.undo_pending()
    assert contents(tmp_path) == dict.fromkeys(("a", "deep/gone", "mine"), "old")
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a", "deep", "mine"]
    assert not repository.undo_pending()


def test_what_began_to_be_undone_is_not_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("old")
    repository = interrupted(tmp_path, monkeypatch, change("new", "a", "b"))
    (tmp_path / "b").write_text("new")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", dying)
        with pytest.raises(Died):
            repository.undo_pending()
    assert repository.complete_pending()
    assert contents(tmp_path) == {"a": "old"}


@pytest.mark.parametrize("undo", [False, True])
def test_an_edit_is_not_lost_to_an_undoing_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undo: bool
) -> None:
    (tmp_path / "a").write_text("old")
    repository = interrupted(tmp_path, monkeypatch, change("new", "a", "b"))
    if undo:
        with monkeypatch.context() as patch:
            patch.setattr(Journal, "_conclude", dying)
            with pytest.raises(Died):
                repository.undo_pending()
    (tmp_path / "b").write_text("mine")
    with pytest.raises(Refused) as caught:
        repository.undo_pending()
    assert caught.value.finding.location.file == "b"
    assert contents(tmp_path) == {"a": "old", "b": "mine"}


@pytest.mark.parametrize("damage", ["emptied", "removed"])
def test_a_damaged_stage_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    (tmp_path / "a").write_text("old")
    repository = interrupted(tmp_path, monkeypatch, change("new", "a"))
    staged = tmp_path / ".capsmith/stage/new/a"
    if damage == "emptied":
        staged.write_text("")
    else:
        staged.unlink()
    with pytest.raises(UnreadableInput) as caught:
        repository.complete_pending()
    assert caught.value.finding.id == "pending-damaged"
    assert contents(tmp_path) == {"a": "old"}
    assert repository.undo_pending()
    assert contents(tmp_path) == {"a": "old"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"before": ["a"]}',
        '{"before": {"../a": ""}, "after": {"../a": ""}, "undo": false}',
        '{"before": {"a": ""}, "after": {}, "undo": false}',
        "[" * 100_000,
        "\0",
    ],
)
def test_a_strange_list_of_pending_changes_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / ".capsmith").mkdir()
    (tmp_path / ".capsmith/pending.json").write_text(text)
    with pytest.raises(UnreadableInput):
        Repository(tmp_path).complete_pending()


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


def test_what_a_killed_run_left_beside_a_new_folder_is_cleared_away(tmp_path: Path) -> None:
    (tmp_path / ".repo.capsmith-1/a").mkdir(parents=True)
    (tmp_path / ".repo.capsmith-2").mkdir()
    with held(tmp_path / ".repo.capsmith-2"):
        Repository(tmp_path / "repo").apply(change("new", "a"))
        assert sorted(p.name for p in tmp_path.iterdir()) == [".repo.capsmith-2", "repo"]


def test_a_folder_that_comes_into_being_meanwhile_is_somebody_elses(tmp_path: Path) -> None:
    target = tmp_path / "repo"
    repository = Repository(target)
    with repository.held():
        Repository(target).apply(change("theirs", "a"))
        assert repository.read("a") is None
        with pytest.raises(Refused) as caught:
            repository.apply(change("new", "a"))
    assert caught.value.finding.id == "output-busy"
    assert contents(target) == {"a": "theirs"}
    assert [entry.name for entry in tmp_path.iterdir()] == ["repo"]


def test_a_folder_is_held_by_one_run_at_a_time(tmp_path: Path) -> None:
    with held(tmp_path), pytest.raises(Refused) as caught, held(tmp_path):
        pass
    assert caught.value.finding.id == "output-busy"
    with held(tmp_path):
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
    found = repository.contents(paths, theirs=paths)
    assert found == {"link": b"", "latin": b"caf\xe9", "folder": b""}
    for path in ("link", "folder"):
        with pytest.raises(Refused):
            repository.contents([path])
    with pytest.raises(UnreadableInput):
        repository.read("latin")
