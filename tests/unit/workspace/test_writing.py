"""Many files, written at the same time: all of them whole and on the disk, or an error."""

from __future__ import annotations

import os
import struct
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from capsmith.workspace.files import replace_file, write_all
from capsmith.workspace.repository import Change, Repository
from tests.unit.workspace.changing import Died, before_each_move, change, contents, dying

_NO_ID = 0xFFFFFFFF
MANY = tuple(f"{folder}/{name}" for folder in ("a", "b/c") for name in range(20))


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list to which syncs and moves are added in order."""
    seen: list[str] = []
    fsync = os.fsync

    def sync(descriptor: int) -> None:
        fsync(descriptor)
        seen.append("sync")

    monkeypatch.setattr(os, "fsync", sync)
    before_each_move(monkeypatch, lambda source: seen.append(f"move {source}"))
    return seen


def test_contents_and_permissions(tmp_path: Path) -> None:
    write_all((tmp_path / name, name.encode(), 0o640 + len(name)) for name in MANY)
    assert contents(tmp_path) == {name: name for name in MANY}
    for name in MANY:
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o640 + len(name)
    assert threading.active_count() == 1


def test_a_write_that_fails_is_raised_when_no_other_is_under_way(tmp_path: Path) -> None:
    (tmp_path / "b" / "c" / "7").mkdir(parents=True)
    with pytest.raises(IsADirectoryError, match="7"):
        write_all((tmp_path / name, b"x", 0o644) for name in MANY)
    assert threading.active_count() == 1


def test_an_interrupt_ends_the_writes_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    join = threading.Thread.join
    interrupts = [KeyboardInterrupt()]

    def interrupted_join(thread: threading.Thread) -> None:
        if interrupts:
            raise interrupts.pop()
        join(thread)

    monkeypatch.setattr(threading.Thread, "join", interrupted_join)
    with pytest.raises(KeyboardInterrupt):
        write_all((tmp_path / name, b"x", 0o644) for name in MANY)
    assert threading.active_count() == 1


def test_a_new_folder_gets_its_name_when_every_file_is_on_the_disk(
    tmp_path: Path, events: list[str]
) -> None:
    Repository(tmp_path / "new").apply(change("x", *MANY))
    assert events[:-1] == ["sync"] * len(MANY)
    assert events[-1].startswith("move")


def test_nothing_refers_to_what_is_staged_until_it_is_on_the_disk(
    tmp_path: Path, events: list[str]
) -> None:
    repository = Repository(tmp_path)
    repository.apply(change("old", *MANY))
    del events[:]
    repository.apply(change("new", *MANY))
    staged, listed = 2 * len(MANY), 1
    assert events[: staged + listed] == ["sync"] * (staged + listed)
    first, *rest = events[staged + listed :]
    assert first.endswith("pending.json.new")
    assert all("/stage/new/" in event for event in rest)
    assert len(rest) == len(MANY)


def test_replacing_a_file_leaves_all_other_files_as_they_are(tmp_path: Path) -> None:
    target, other = tmp_path / "baseline.yaml", tmp_path / "baseline.yaml.new"
    target.write_text("old")
    other.write_text("mine")
    replace_file(target, b"new")
    assert contents(tmp_path) == {"baseline.yaml": "new", "baseline.yaml.new": "mine"}
    assert target.stat().st_mode & 0o777 == 0o644


def test_a_file_that_cannot_be_replaced_leaves_no_temporary_file(tmp_path: Path) -> None:
    (tmp_path / "baseline.yaml").mkdir()
    with pytest.raises(IsADirectoryError):
        replace_file(tmp_path / "baseline.yaml", b"new")
    assert [entry.name for entry in tmp_path.iterdir()] == ["baseline.yaml"]


def test_replacing_a_file_keeps_its_permissions_and_its_link(tmp_path: Path) -> None:
    target = tmp_path / "baseline.yaml"
    target.write_text("old")
    target.chmod(0o660)
    (tmp_path / "link").symlink_to(target)
    replace_file(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == 0o660


def test_a_pipe_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        replace_file(tmp_path / "pipe", b"new")
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize("is_permitted", [True, False])
def test_files_keep_owner_and_group_where_that_is_permitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_permitted: bool
) -> None:
    (tmp_path / "a").write_text("old")
    given: list[tuple[str, int, int]] = []

    def chown(path: Path, owner: int, group: int) -> None:
        given.append((path.name, owner, group))
        if not is_permitted:
            raise PermissionError

    stat = Path.stat

    def foreign(path: Path, **options: bool) -> os.stat_result:
        found = stat(path, **options)
        if path != tmp_path / "a":
            return found
        return os.stat_result((*found[:4], 4711, 4712, *found[6:]))

    monkeypatch.setattr(os, "chown", chown)
    monkeypatch.setattr(Path, "stat", foreign)
    Repository(tmp_path).apply(change("new", "a", "b"))
    assert contents(tmp_path) == {"a": "new", "b": "new"}
    assert given == [("a", -1, 4712), ("a", 4711, -1)] * 2  # the new file, and the one to undo


_ACL = struct.pack(
    "<I" + 5 * "HHI", 2, 1, 6, _NO_ID, 2, 6, 4711, 4, 4, _NO_ID, 16, 6, _NO_ID, 32, 4, _NO_ID
)
"""Access control list by which user 4711 may write too, as the system stores it."""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has them in this form")
@pytest.mark.parametrize("is_undone", [False, True])
def test_files_keep_their_access_control_lists_and_extended_attributes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_undone: bool
) -> None:
    attributes = {"user.note": b"mine", "system.posix_acl_access": _ACL}
    (tmp_path / "a").write_text("old")
    try:
        for name, value in attributes.items():
            os.setxattr(tmp_path / "a", name, value)
    except OSError as error:
        pytest.skip(f"the file system has none: {error}")
    files = change("new", "a", "b")
    with monkeypatch.context() as patch:
        if is_undone:
            before_each_move(patch, lambda source: dying() if source.endswith("/b") else None)
        with suppress(Died):
            Repository(tmp_path).apply(files)
    Repository(tmp_path).undo_pending()
    assert contents(tmp_path) == ({"a": "old"} if is_undone else {"a": "new", "b": "new"})
    found = {name: os.getxattr(tmp_path / "a", name) for name in os.listxattr(tmp_path / "a")}
    assert found == attributes
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o664


@pytest.mark.parametrize(
    ("mode", "executable", "after"),
    [(0o664, False, 0o664), (0o660, True, 0o770), (0o755, False, 0o644)],
)
def test_generated_files_stay_shared(
    tmp_path: Path, mode: int, executable: bool, after: int
) -> None:
    (tmp_path / "a").write_text("old")
    (tmp_path / "a").chmod(mode)
    files = Change()
    files.write("a", "new", executable)
    Repository(tmp_path).apply(files)
    assert (tmp_path / "a").stat().st_mode & 0o777 == after
