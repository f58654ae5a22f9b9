"""Runs that die in the middle of a change: the old tree, the new one, or one that is completed."""

from __future__ import annotations

from pathlib import Path

import pytest

from capsmith.errors import Refused, UnreadableInput
from capsmith.workspace.hold import hold_folder
from capsmith.workspace.journal import Journal
from capsmith.workspace.repository import Repository
from tests.unit.workspace.changing import (
    Died,
    before_each_move,
    change,
    contents,
    dying,
    interrupted,
)


@pytest.mark.parametrize("dies_at", range(1, 7))
def test_a_killed_run_leaves_the_old_tree_or_is_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dies_at: int
) -> None:
    repository = Repository(tmp_path)
    (tmp_path / "mine").write_text("mine")
    repository.apply(change("old", "a", "b", "gone"))
    old = contents(tmp_path)
    calls = 0

    def die(source: str) -> None:
        nonlocal calls
        calls += 1
        if calls == dies_at:
            raise Died

    with monkeypatch.context() as patch:
        before_each_move(patch, die)
        try:
            repository.apply(change("new", "a", "b", "c", remove=("gone",)))
            finished = True
        except Died:
            finished = False
    new = {"a": "new", "b": "new", "c": "new", "mine": "mine"}
    pending = (tmp_path / ".capsmith/pending.json").exists()
    assert finished or pending or contents(tmp_path) == old
    assert repository.complete_pending() is pending
    assert contents(tmp_path) == (new if finished or pending else old)
    assert not (tmp_path / ".capsmith/stage").exists()


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


def test_an_undo_that_has_begun_is_not_completed_as_a_change(
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
def test_a_damaged_stage_is_reported(
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


def test_what_a_killed_run_left_beside_a_new_folder_is_cleared_away(tmp_path: Path) -> None:
    left, used = ".repo.capsmith-building-1", ".repo.capsmith-building-2"
    (tmp_path / left / "a").mkdir(parents=True)
    (tmp_path / used).mkdir()
    with hold_folder(tmp_path / used):
        Repository(tmp_path / "repo").apply(change("new", "a"))
        assert sorted(p.name for p in tmp_path.iterdir()) == [used, "repo"]


@pytest.mark.parametrize("suffix", ["backup", "1", "building", "building-", "building-1-copy"])
def test_a_folder_of_the_author_with_a_similar_name_stays(tmp_path: Path, suffix: str) -> None:
    folder = tmp_path / f".repo.capsmith-{suffix}"
    folder.mkdir()
    (folder / "notes").write_text("mine")
    Repository(tmp_path / "repo").apply(change("new", "a"))
    assert (folder / "notes").read_text() == "mine"


def test_the_folder_that_a_killed_run_was_building_is_removed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []

    def die(source: str) -> None:
        names.append(Path(source).name)
        raise Died

    with monkeypatch.context() as patch:
        before_each_move(patch, die)
        with pytest.raises(Died):
            Repository(tmp_path / "repo").apply(change("new", "a"))
    (tmp_path / names[0] / "a").mkdir(parents=True)
    Repository(tmp_path / "repo").apply(change("new", "a"))
    assert [entry.name for entry in tmp_path.iterdir()] == ["repo"]
