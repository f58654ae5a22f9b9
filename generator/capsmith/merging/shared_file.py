"""Merge a shared file three ways: bytes in, bytes out.

The author's line endings, byte order mark, missing final newline and ASCII-compatible encoding are
preserved.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from capsmith.errors import UnreadableInput
from capsmith.merging.lock import BASE_FOLDER, RECORDS_OF_HEAD
from capsmith.tree import is_text_of

if TYPE_CHECKING:
    from capsmith.merging.three_way import Agreed, Conflict, Lines

_MARK = "\ufeff".encode()
_SIZE = 7


class ConflictStyle(StrEnum):
    """What conflict markers contain: both sides, and optionally the original."""

    MERGE = "merge"
    DIFF3 = "diff3"


class ConflictLabels(NamedTuple):
    """The labels in conflict markers for the two sides and the original."""

    ours: str
    base: str
    theirs: str


class Merged(NamedTuple):
    """A merged file, and the 1-based line numbers where conflicts begin."""

    content: bytes
    conflicts: tuple[int, ...]


def merge_shared(
    base: bytes, ours: bytes, theirs: bytes, style: ConflictStyle, names: ConflictLabels
) -> Merged | None:
    r"""Return ``ours`` with the changes from ``base`` to ``theirs``, or None if ``ours`` is binary.

    ``ours`` is the author's file.  ``base`` and ``theirs`` are capsmith's last and new content:
    UTF-8 without a byte order mark, with ``\n`` line endings.  ``style`` determines what conflict
    markers contain, and ``names`` their labels.
    """
    # Imported only to merge, because a first run has nothing to merge.
    from capsmith.merging.three_way import Conflict, merge

    # This is git's test.  UTF-16 also contains null bytes, and merging it by lines would break it.
    if b"\0" in ours:
        return None
    # The merge works on bytes, because decoding could fail or change the author's content.  Only
    # the byte order mark and line endings, which editors and git may have changed, are removed
    # before the merge and restored afterwards.  Otherwise every line would differ from the base,
    # and the whole file would be one conflict.
    mark = _MARK if ours.startswith(_MARK) else b""
    text = ours.removeprefix(mark)
    crlf = has_crlf(text)
    if crlf:
        text = text.replace(b"\r\n", b"\n")
    chunks = merge(_lines(base), _lines(text), _lines(theirs))
    lines, conflicts = _written(chunks, style, names)
    # A marker at the end needs its own line, because git and editors look for whole lines.
    in_conflict = bool(chunks) and isinstance(chunks[-1], Conflict)
    ended = not text or text.endswith(b"\n") or in_conflict
    content = b"\n".join(lines) + (b"\n" if lines and ended else b"")
    return Merged(mark + (content.replace(b"\n", b"\r\n") if crlf else content), conflicts)


def find_conflict_markers(
    content: bytes, names: ConflictLabels, genuine: Iterable[bytes]
) -> tuple[int, ...]:
    """Return the 1-based line numbers of the conflict markers in ``content``.

    ``names`` are the markers' labels.  ``genuine`` holds the contents that were merged: if any of
    them has a bare ``=======``, such a line does not count as a marker.
    """
    # The author may also have lines that consist of `=======`, for example below a Markdown title.
    marks = {_marker("<", names.ours), _marker("|", names.base), _marker(">", names.theirs)}
    middle = _marker("=")
    if not any(middle in text.splitlines() for text in genuine):
        marks.add(middle)
    found = enumerate(content.removeprefix(_MARK).splitlines(), 1)
    return tuple(number for number, line in found if line in marks)


def find_unresolved_conflict(content: bytes) -> int | None:
    """Return the 1-based line number of the first conflict in ``content``; None without one.

    A conflict is what git and capsmith write: three markers in order, whatever their labels.
    """
    begin: int | None = None
    is_second_side = False
    for number, line in enumerate(content.removeprefix(_MARK).splitlines(), 1):
        if line.startswith(_marker("<") + b" "):
            begin, is_second_side = begin or number, False
        elif line == _marker("="):
            is_second_side = begin is not None
        elif line.startswith(_marker(">") + b" ") and is_second_side:
            return begin
    return None


def has_crlf(content: bytes) -> bool:
    """Return whether the content has line endings and all of them are ``\\r\\n``.

    Files with mixed line endings are not converted: each line keeps its own.
    """
    count = content.count(b"\r\n")
    return count > 0 and count == content.count(b"\n")


def _lines(content: bytes) -> Lines:
    return tuple(content.removesuffix(b"\n").split(b"\n")) if content else ()


def _written(
    chunks: Iterable[Agreed | Conflict], style: ConflictStyle, names: ConflictLabels
) -> tuple[list[bytes], tuple[int, ...]]:
    from capsmith.merging.three_way import Agreed, count_common_ends

    lines: list[bytes] = []
    conflicts: list[int] = []
    for chunk in chunks:
        if isinstance(chunk, Agreed):
            lines += chunk.lines
            continue
        # Lines that both sides added are left outside the markers, as git does by default.  This
        # does not apply to the diff3 style, where each part must be complete to be compared with
        # the original.
        head, tail = (
            count_common_ends(chunk.ours, chunk.theirs) if style is ConflictStyle.MERGE else (0, 0)
        )
        ours = chunk.ours[head : len(chunk.ours) - tail]
        theirs = chunk.theirs[head : len(chunk.theirs) - tail]
        lines += chunk.ours[:head]
        conflicts.append(len(lines) + 1)
        lines += [_marker("<", names.ours), *ours]
        if style is ConflictStyle.DIFF3:
            lines += [_marker("|", names.base), *chunk.base]
        lines += [_marker("="), *theirs, _marker(">", names.theirs)]
        lines += chunk.ours[len(chunk.ours) - tail :]
    return lines, tuple(conflicts)


def _marker(sign: str, name: str = "") -> bytes:
    return (sign * _SIZE + (f" {name}" if name else "")).encode()


def verify_base(path: str, content: bytes | None, digest: str) -> bytes:
    """Return the merge base for the shared file ``path``: the content that capsmith generated last.

    ``content`` is the stored copy.  Raises UnreadableInput if it is missing or does not match
    ``digest``, because a merge from another base could lose the author's work.
    """
    if content is None or not is_text_of(content, digest):
        raise UnreadableInput(
            "base-altered" if content is not None else "base-missing",
            "the merge requires the text that capsmith generated last, but "
            + ("this file differs from it" if content is not None else "it is missing"),
            file=f"{BASE_FOLDER}/{path}",
            hint="Restore the file from version control; after a merge of branches with "
            f"{RECORDS_OF_HEAD}.  Without version control: move {path} out of the repository, run "
            f"capsmith update --restore {path}, and bring your edits back.",
        )
    # A checkout with core.autocrlf may have converted the stored copy; its digest ignores line
    # endings.
    return content.replace(b"\r\n", b"\n")
