"""A folder becomes a symlink between the check of a path and the move of its file."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from capsmith.errors import Refused
from capsmith.workspace.repository import Change, Repository
from tests.unit.workspace.changing import before_each_move, change, contents

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux can hold a folder")
_RENAME = os.rename


def _change() -> Change:
    return change("new", "sub/deep/created", "sub/deep/replaced", remove=("sub/deep/removed",))


@pytest.mark.parametrize("name", ["created", "replaced", "removed"])
def test_nothing_outside_of_the_repository_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "repository"
    for place in (outside / "deep", folder / "sub/deep"):
        place.mkdir(parents=True)
        for each in ("replaced", "removed"):
            (place / each).write_text("old")
    before = contents(outside)

    def swap(source: str) -> None:
        if source.endswith(f"/{name}") and not (folder / "sub").is_symlink():
            _RENAME(folder / "sub", folder / "aside")
            (folder / "sub").symlink_to(outside)

    before_each_move(monkeypatch, swap)
    # Whether the next path of the folder is refused depends on the order of the moves.
    with suppress(Refused):
        Repository(folder).apply(_change())
    assert (folder / "sub").is_symlink()
    assert contents(outside) == before


def test_the_author_undoes_it_after_the_folder_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sub/deep").mkdir(parents=True)
    for each in ("replaced", "removed"):
        (tmp_path / "sub/deep" / each).write_text("old")
    before = contents(tmp_path)

    def swap(source: str) -> None:
        if not (tmp_path / "sub").is_symlink():
            _RENAME(tmp_path / "sub", tmp_path / "aside")
            (tmp_path / "sub").symlink_to(tmp_path / "elsewhere")

    with monkeypatch.context() as patch:
        before_each_move(patch, swap)
        with pytest.raises(Refused):
            Repository(tmp_path).apply(_change())
    (tmp_path / "sub").unlink()
    _RENAME(tmp_path / "aside", tmp_path / "sub")
    Repository(tmp_path).undo_pending()
    assert contents(tmp_path) == before
