"""Changes of a repository, and runs that end in the middle of one."""

from __future__ import annotations

from pathlib import Path

import pytest

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


def interrupted(folder: Path, monkeypatch: pytest.MonkeyPatch, change: Change) -> Repository:
    """A repository whose change is pending, and of which nothing was moved yet."""
    repository = Repository(folder)
    with monkeypatch.context() as patch:
        patch.setattr(Repository, "complete_pending", lambda self: False)
        repository.apply(change)
    return repository
