"""A three-way merge of lines.  Knows no files, encodings or markers.

Written here because the merge libraries that there are do not fit: merge3 is under the GPL, and
three-merge works on characters, has no diff3 form and had its last release in 2020.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Lines = tuple[bytes, ...]

_MOST_COMPARISONS = 10_000_000
"""Above this, what lies between common ends counts as one change: time stays bounded."""


@dataclass(frozen=True, slots=True)
class Agreed:
    """Lines without a conflict."""

    lines: Lines


@dataclass(frozen=True, slots=True)
class Conflict:
    """Lines that both sides changed in different ways."""

    base: Lines
    ours: Lines
    theirs: Lines


@dataclass(frozen=True, slots=True)
class _Hunk:
    """Lines ``start`` to ``end`` of the base became lines ``first`` to ``last`` of a side."""

    start: int
    end: int
    first: int
    last: int

    @property
    def shift(self) -> int:
        """Return how much further down the side the lines after the hunk are than in the base."""
        return self.last - self.end


_NOTHING = _Hunk(0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class _Side:
    lines: Sequence[bytes]
    hunks: tuple[_Hunk, ...]

    def made_of(self, start: int, end: int) -> Lines:
        """Return the side's lines for ``start`` to ``end`` of the base, which cover whole hunks."""
        before, until = _NOTHING, _NOTHING
        for hunk in self.hunks:
            if hunk.end < start:
                before = hunk
            if hunk.end <= end:
                until = hunk
        return tuple(self.lines[start + before.shift : end + until.shift])


def merge(
    base: Sequence[bytes], ours: Sequence[bytes], theirs: Sequence[bytes]
) -> tuple[Agreed | Conflict, ...]:
    """Merge the changes from ``base`` to ``ours`` and to ``theirs``.

    Changes without a common line between them count as one.  It is a conflict unless both sides
    agree, or one of them left the lines unchanged.
    """
    mine, other = _Side(ours, _hunks(base, ours)), _Side(theirs, _hunks(base, theirs))
    chunks: list[Agreed | Conflict] = []
    done = 0
    for start, end in _regions(mine.hunks, other.hunks):
        chunks.append(Agreed(tuple(base[done:start])))
        chunks.append(
            _settled(tuple(base[start:end]), mine.made_of(start, end), other.made_of(start, end))
        )
        done = end
    chunks.append(Agreed(tuple(base[done:])))
    return tuple(chunk for chunk in chunks if isinstance(chunk, Conflict) or chunk.lines)


def _settled(base: Lines, ours: Lines, theirs: Lines) -> Agreed | Conflict:
    if ours in (theirs, base):
        return Agreed(theirs)
    return Agreed(ours) if theirs == base else Conflict(base, ours, theirs)


def _regions(mine: tuple[_Hunk, ...], other: tuple[_Hunk, ...]) -> Iterator[tuple[int, int]]:
    """Yield the spans of the base that hunks cover; hunks that touch are in one span."""
    spans = sorted((hunk.start, hunk.end) for hunk in (*mine, *other))
    if not spans:
        return
    # As git does: hunks that only touch are one region, because the author may have replaced the
    # very line after which capsmith inserts.
    start, end = spans[0]
    for next_start, next_end in spans[1:]:
        if next_start > end:
            yield start, end
            start, end = next_start, next_end
        else:
            end = max(end, next_end)
    yield start, end


def count_common_ends(one: Sequence[bytes], other: Sequence[bytes]) -> tuple[int, int]:
    """Return how many lines both begin with, and how many of the others both end with."""
    shortest = min(len(one), len(other))
    head = next((i for i in range(shortest) if one[i] != other[i]), shortest)
    most = shortest - head
    tail = next((i for i in range(most) if one[-1 - i] != other[-1 - i]), most)
    return head, tail


def _hunks(base: Sequence[bytes], side: Sequence[bytes]) -> tuple[_Hunk, ...]:
    head, tail = count_common_ends(base, side)
    old, new = base[head : len(base) - tail], side[head : len(side) - tail]
    if not old and not new:
        return ()
    if _comparisons(old, new) > _MOST_COMPARISONS:
        return (_Hunk(head, head + len(old), head, head + len(new)),)
    # Imported here because most runs merge nothing.
    from difflib import SequenceMatcher

    matcher = SequenceMatcher(None, old, new, autojunk=False)
    return tuple(
        _Hunk(head + start, head + end, head + first, head + last)
        for tag, start, end, first, last in matcher.get_opcodes()
        if tag != "equal"
    )


def _comparisons(old: Sequence[bytes], new: Sequence[bytes]) -> int:
    often = Counter(new)
    return sum(often[line] for line in old)
