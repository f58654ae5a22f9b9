"""Another program saves a file while capsmith works: what it saved is never replaced."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from capsmith.errors import Refused
from capsmith.workspace import files
from capsmith.workspace.journal import Journal
from capsmith.workspace.repository import Change, Repository
from tests.unit.workspace.changing import Died, before_each_move, change, contents, dying

_OLD = {"a": "old", "b": "old", "gone": "old"}
_NEW = {"a": "new", "b": "new", "c": "new"}
_RENAME = os.rename
Save = Callable[[Path], None]


def append(file: Path) -> None:
    """Save as ``>>`` and most editors do: in the file itself."""
    with file.open("a") as stream:
        stream.write(" mine")


def exchange(file: Path) -> None:
    """Save as careful editors and git do: by a rename of a new file."""
    text = file.read_text() if file.exists() else ""
    new = file.with_name(f".{file.name}.swp")
    new.write_text(f"{text} mine")
    _RENAME(new, file)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path)
    made.apply(change("old", "a", "b", "gone"))
    return made


def apply_change(repository: Repository) -> None:
    repository.apply(change("new", "a", "b", "c", remove=("gone",)))


def find_refusal(repository: Repository) -> tuple[str, str] | None:
    """Apply the change; return id and file of the finding if it is refused."""
    try:
        apply_change(repository)
    except Refused as error:
        return error.finding.id, error.finding.location.file
    return None


@pytest.mark.parametrize("save", [append, exchange])
@pytest.mark.parametrize("name", ["a", "b", "c", "gone"])
def test_after_it_was_read(repository: Repository, name: str, save: Save) -> None:
    with repository.hold():
        repository.read_existing(["a", "b", "c", "gone"])
        save(repository.folder / name)
        with pytest.raises(Refused) as caught:
            apply_change(repository)
    assert (caught.value.finding.id, caught.value.finding.location.file) == ("output-saved", name)
    assert contents(repository.folder) == {**_OLD, name: f"{_OLD.get(name, '')} mine"}
    assert not (repository.folder / ".capsmith/stage").exists()


def test_after_another_reader_read_it(repository: Repository) -> None:
    repository.watch("a")
    append(repository.folder / "a")
    with pytest.raises(Refused, match="was saved"):
        apply_change(repository)
    assert contents(repository.folder) == {**_OLD, "a": "old mine"}


def test_while_its_former_content_is_kept(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Journal._kept

    def keep(journal: Journal, path: str) -> tuple[Path, bytes, int]:
        if path == "a":
            append(repository.folder / path)
        return kept(journal, path)

    monkeypatch.setattr(Journal, "_kept", keep)
    with pytest.raises(Refused, match="was saved"):
        apply_change(repository)
    assert contents(repository.folder) == {**_OLD, "a": "old mine"}


@pytest.mark.parametrize("can_exchange", [True, False])
@pytest.mark.parametrize("save", [append, exchange])
@pytest.mark.parametrize("name", ["a", "b", "c", "gone"])
@pytest.mark.parametrize("moment", range(1, 7))
def test_at_any_move(
    repository: Repository,
    monkeypatch: pytest.MonkeyPatch,
    moment: int,
    name: str,
    save: Save,
    can_exchange: bool,
) -> None:
    """The file has what was saved: on the old content, or on the new one if that was there."""
    file, calls = repository.folder / name, [""]
    saved: list[str] = []

    def act(source: str) -> None:
        # Where files cannot be exchanged, a save between comparison and rename goes unnoticed.
        is_late = not can_exchange and source == calls[-1]
        calls.append(source)
        if len(calls) == moment + 1 and not is_late:
            saved.append(file.read_text() if file.exists() else "")
            save(file)

    with monkeypatch.context() as patch:
        if not can_exchange:
            patch.setattr(files, "_find_exchange", lambda: None)
        before_each_move(patch, act)
        refusal = find_refusal(repository)
    is_refused = refusal is not None
    assert refusal in (None, ("output-saved", name))
    expected = dict(_OLD if is_refused else _NEW)
    if saved:
        expected[name] = f"{saved[0]} mine"
    # A save of the new file, which is in its place already, stops nothing.
    assert is_refused == (saved == [_OLD.get(name, "")])
    assert contents(repository.folder) == expected
    assert not (repository.folder / ".capsmith/stage").exists()
    assert not Repository(repository.folder).is_interrupted


def test_permissions_alone_change_without_a_move(repository: Repository) -> None:
    allowed = Change()
    allowed.write("a", "old", executable=True)
    repository.apply(allowed)
    assert (repository.folder / "a").stat().st_mode & 0o777 == 0o755
    assert contents(repository.folder) == _OLD


@pytest.mark.parametrize("save", [append, exchange])
@pytest.mark.parametrize("name", ["a", "c", "gone"])
@pytest.mark.parametrize("moment", range(2, 6))
def test_while_a_change_is_undone(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, moment: int, name: str, save: Save
) -> None:
    """A later run can go on, and nothing of what was saved is lost."""
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "_conclude", dying)
        with pytest.raises(Died):
            apply_change(repository)
    saved: list[str] = []
    calls: list[str] = []

    def act(source: str) -> None:
        calls.append(source)
        if len(calls) == moment:
            saved.append(source)
            save(repository.folder / name)

    with monkeypatch.context() as patch:
        before_each_move(patch, act)
        with suppress(Refused):
            repository.undo_pending()
    found = contents(repository.folder)
    assert {**found, name: ""} == {**_OLD, name: ""} or repository.is_interrupted
    assert not saved or found[name].endswith(" mine")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who writes a file")
@pytest.mark.parametrize("name", ["a", "gone"])
def test_while_another_program_is_writing_it(repository: Repository, name: str) -> None:
    """The other program has the file open, and writes the rest of it later."""
    file = repository.folder / name
    with repository.hold(), file.open("w") as stream:
        stream.write("ol")
        stream.flush()
        repository.read_existing(["a", "b", "c", "gone"])
        assert find_refusal(repository) == ("output-saved", name)
        stream.write("d mine")
    assert contents(repository.folder) == {**_OLD, name: "old mine"}


_COMPARE = """\
import fcntl, subprocess, sys
from pathlib import Path
from capsmith.workspace import files

new, target, other = sys.argv[1:]
ask = fcntl.fcntl

def save(descriptor, command, argument):
    result = ask(descriptor, command, argument)
    if (command, argument) == (fcntl.F_SETLEASE, fcntl.F_RDLCK):
        code = "import os, sys; os.open(sys.argv[1], os.O_WRONLY | os.O_NONBLOCK)"
        subprocess.run([sys.executable, "-c", code, other], stderr=subprocess.DEVNULL)
    return result

fcntl.fcntl = save
print(files.replace_unchanged(Path(new), Path(target), files.digest_file(Path(target))))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="leases of files are a feature of Linux")
def test_a_program_that_opens_the_former_file_does_not_end_this_one(tmp_path: Path) -> None:
    """It may know the file by another hard link."""
    new, target, other = tmp_path / "new", tmp_path / "target", tmp_path / "other"
    new.write_text("new")
    target.write_text("old")
    other.hardlink_to(target)
    command = [sys.executable, "-c", _COMPARE, str(new), str(target), str(other)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout, target.read_text()) == (0, "True\n", "new"), done.stderr
