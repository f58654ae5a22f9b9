"""Changes to a repository, and runs that end in the middle of one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from capsmith.workspace import files
from capsmith.workspace.journal import Journal
from capsmith.workspace.repository import Change, Repository


class Died(Exception):
    """Simulates that the process is killed: capsmith cleans up nothing after it."""


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


def interrupted(folder: Path, monkeypatch: pytest.MonkeyPatch, change: Change) -> Repository:
    """Return a repository with a pending change, none of whose files were moved yet."""
    repository = Repository(folder)
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "complete", lambda self, *, is_resumed: None)
        repository.apply(change)
    return repository


def before_each_move(patch: pytest.MonkeyPatch, act: Callable[[str], None]) -> None:
    """Call ``act`` with the source right before each rename, link or exchange of two files."""

    def moving(function: Callable[..., Any]) -> Callable[..., Any]:
        def move(source: Path | str, *arguments: Any) -> Any:
            act(str(source))
            return function(source, *arguments)

        return move

    for name in ("replace", "rename", "link"):
        patch.setattr(os, name, moving(getattr(os, name)))
    patch.setattr(files, "_exchange", moving(files._exchange))
