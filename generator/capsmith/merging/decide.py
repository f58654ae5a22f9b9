"""Decide what to do with each file: the incoming tree against lock and disk.  Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from capsmith.merging.base import is_text_of, verified_base
from capsmith.merging.lock import Lock, LockedFile
from capsmith.merging.shared_file import Names, Style, has_crlf, merge_shared
from capsmith.report import Outcome
from capsmith.tree import FileTree, GeneratedFile, Owner


class Reason(StrEnum):
    """The reason for an outcome, where the outcome alone does not say it."""

    NONE = ""
    EDITED = "edited"
    """A generated file that was edited."""
    TAKEN_BACK = "taken back"
    """An edited file that is replaced, as --force demands."""
    FOREIGN = "foreign"
    """capsmith did not write it."""
    WAS_YOURS = "was yours"
    """An edited file that used to be the author's, or shared, and is to be generated."""
    NOW_SHARED = "now shared"
    """A file of the author that capsmith keeps up to date from now on."""
    NOT_TEXT = "not text"
    """A shared file that cannot be merged."""
    LEFT_OVER = "left over"
    """It is no longer generated, and not capsmith's to remove."""
    BEHIND = "behind"
    """The author took it over, and capsmith has a new text."""


class Decision(NamedTuple):
    """The decision on one path."""

    path: str
    outcome: Outcome
    reason: Reason = Reason.NONE
    content: bytes | None = None
    """What to write; None to write nothing."""
    executable: bool | None = None
    """None leaves the permissions as they are."""
    conflicts: tuple[int, ...] = ()
    """The lines of ``content``, from 1, at which conflicts begin."""


class OnDisk(NamedTuple):
    """The files that exist, by path, and the base of each merged one."""

    files: Mapping[str, bytes]
    base: Mapping[str, bytes]


class MergeOptions(NamedTuple):
    """Options of a merge, and the files that may be replaced."""

    names: Names
    style: Style = Style.MERGE
    force: bool = False
    """Replace edited generated files."""
    restore: frozenset[str] = frozenset()
    """Deleted files to write again."""


def decide(
    incoming: FileTree, disk: OnDisk, lock: Lock | None, options: MergeOptions
) -> tuple[Decision, ...]:
    """Return one decision a path, sorted by path.

    ``disk`` holds those paths of ``incoming`` and ``lock`` that exist.  A file of the author is
    never replaced, a scaffold or shared file that was deleted stays deleted, and a generated file
    is removed only if the lock lists it with the digest that it still has.  Raises UnreadableInput
    when the base of a merge is missing or altered.
    """
    locked = lock.files if lock is not None else {}
    decisions = [_decide(file, disk, locked.get(file.path), options) for file in incoming]
    decisions += [
        _orphan(path, disk.files[path], known)
        for path, known in locked.items()
        if path in disk.files and path not in incoming
    ]
    return tuple(sorted(decisions, key=lambda decision: decision.path))


def settle(
    path: str, owner: Owner, digest: str, known: LockedFile | None, content: bytes | None
) -> Decision | None:
    """Return the decision on a file that stays as it is; None when there is something to do.

    ``owner`` and ``digest`` are those of the text that is generated, ``known`` is the file in the
    lock, and ``content`` what is on disk.
    """
    if known is not None and known.mine:
        reason = Reason.BEHIND if digest != known.digest else Reason.NONE
        return Decision(path, Outcome.KEPT, reason)
    if content is None:
        needed = known is None or Owner.GENERATED in (owner, known.owner)
        return None if needed else Decision(path, Outcome.KEPT)
    if is_text_of(content, digest):
        return Decision(path, Outcome.UNCHANGED)
    if owner is Owner.SCAFFOLD:
        return Decision(path, Outcome.KEPT)
    if known is not None and known.owner is owner is Owner.MERGED and known.digest == digest:
        return Decision(path, Outcome.KEPT)
    return None


def _decide(
    file: GeneratedFile, disk: OnDisk, known: LockedFile | None, options: MergeOptions
) -> Decision:
    content = disk.files.get(file.path)
    is_mine = known is not None and known.mine
    if content is None and file.path in options.restore and not is_mine:
        return _written(file, Outcome.CREATED, b"")
    settled = settle(file.path, file.owner, file.digest, known, content)
    if settled is not None:
        return settled
    if content is None:
        return _written(file, Outcome.CREATED, b"")
    if known is None:
        return Decision(file.path, Outcome.REFUSED, Reason.FOREIGN)
    if is_text_of(content, known.digest):
        return _written(file, Outcome.UPDATED, content)
    return _edited(file, content, known, disk, options)


def _edited(
    file: GeneratedFile, content: bytes, known: LockedFile, disk: OnDisk, options: MergeOptions
) -> Decision:
    match known.owner, file.owner:
        case Owner.GENERATED, _:
            if options.force:
                return _written(file, Outcome.UPDATED, content, Reason.TAKEN_BACK)
            return Decision(file.path, Outcome.REFUSED, Reason.EDITED)
        case _, Owner.GENERATED:
            return Decision(file.path, Outcome.REFUSED, Reason.WAS_YOURS)
        case Owner.SCAFFOLD, _:
            return Decision(file.path, Outcome.KEPT, Reason.NOW_SHARED)
        case _:
            return _merged(file, content, known, disk, options)


def _merged(
    file: GeneratedFile, content: bytes, known: LockedFile, disk: OnDisk, options: MergeOptions
) -> Decision:
    base = verified_base(file.path, disk.base.get(file.path), known.digest)
    merged = merge_shared(base, content, file.text.encode(), options.style, options.names)
    if merged is None:
        return Decision(file.path, Outcome.REFUSED, Reason.NOT_TEXT)
    if merged.content == content:
        return Decision(file.path, Outcome.KEPT)
    outcome = Outcome.CONFLICTED if merged.conflicts else Outcome.MERGED
    return Decision(file.path, outcome, content=merged.content, conflicts=merged.conflicts)


def _written(
    file: GeneratedFile, outcome: Outcome, former: bytes, reason: Reason = Reason.NONE
) -> Decision:
    """Write the text of ``file``, with the line ends of the ``former`` content."""
    text = file.text.encode()
    content = text.replace(b"\n", b"\r\n") if has_crlf(former) else text
    kept = outcome is Outcome.UPDATED and file.owner is Owner.MERGED
    return Decision(file.path, outcome, reason, content, None if kept else file.executable)


def _orphan(path: str, content: bytes, known: LockedFile) -> Decision:
    if known.mine:
        return Decision(path, Outcome.KEPT)
    if known.owner is Owner.SCAFFOLD or not is_text_of(content, known.digest):
        return Decision(path, Outcome.KEPT, Reason.LEFT_OVER)
    return Decision(path, Outcome.REMOVED)
