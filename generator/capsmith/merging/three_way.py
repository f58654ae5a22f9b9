"""A three-way merge of lines, like diff3, independent of files, encodings and conflict markers.

The base is compared with each side.  Hunks from the two sides that overlap or touch form one region
of the base.  Each region is settled as a whole, and the lines between regions are common to all
three.  Every line in the result therefore comes from the base or a side, and no change is dropped:
it is in the result or in a :class:`Conflict`.

Existing libraries are not suitable: merge3 is under the GPL, and three-merge works on characters,
has no diff3 style and had its last release in 2020.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Lines = tuple[bytes, ...]

_MOST_COMPARISONS = 10_000_000
"""Maximum number of comparisons; above it, everything between the common ends counts as one change,
so that the time stays bounded.

``SequenceMatcher`` compares each pair of equal lines, so a file with many equal lines, such as a
long table of blank rows, takes quadratic time.  A single large change is correct too, but conflicts
more often."""


@dataclass(frozen=True, slots=True)
class Agreed:
    """Lines in the result of a three-way merge that are not in conflict."""

    lines: Lines


@dataclass(frozen=True, slots=True)
class Conflict:
    """Lines that the two sides of a three-way merge changed in different ways."""

    base: Lines
    ours: Lines
    theirs: Lines


@dataclass(frozen=True, slots=True)
class _Hunk:
    """Lines ``start`` to ``end`` of the base became lines ``first`` to ``last`` of a side.

    Lines count from 0, and the ends are exclusive.  A pure insertion has ``start == end``.
    """

    start: int
    end: int
    first: int
    last: int

    @property
    def shift(self) -> int:
        """Return the difference between a later line's position in the side and in the base."""
        return self.last - self.end


_NOTHING = _Hunk(0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class _Side:
    """One side of a merge, with its differences from the base.

    The hunks are in order and do not touch.
    """

    lines: Sequence[bytes]
    hunks: tuple[_Hunk, ...]

    def select(self, start: int, end: int) -> Lines:
        """Return the side's lines for ``start`` to ``end`` of the base.

        No hunk may cross either end: otherwise, the result would begin or end inside a change.
        """
        # The shift at an end is the shift of the last hunk before it.  A hunk that ends exactly at
        # `start` belongs to the region, because regions include touching hunks; hence `<` there.
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
    """Return ``base`` with the changes from ``ours`` and ``theirs``, as chunks in order.

    Changes without a common line between them count as one.  A change is a conflict unless both
    sides agree or one of them left the lines unchanged.  If the same side is chosen in every
    conflict, all chunks together are a complete file: no line is lost or repeated.
    """
    # No hunk crosses the end of a region, because regions are unions of hunks.  So `select` may be
    # called for both sides, even if one of them has no change.
    mine, other = _Side(ours, _hunks(base, ours)), _Side(theirs, _hunks(base, theirs))
    chunks: list[Agreed | Conflict] = []
    done = 0
    # Regions are in order and have at least one common line between them, so `done` never moves
    # back.
    for start, end in _regions(mine.hunks, other.hunks):
        chunks.append(Agreed(tuple(base[done:start])))
        chunks.append(
            _settle(tuple(base[start:end]), mine.select(start, end), other.select(start, end))
        )
        done = end
    chunks.append(Agreed(tuple(base[done:])))
    return tuple(chunk for chunk in chunks if isinstance(chunk, Conflict) or chunk.lines)


def _settle(base: Lines, ours: Lines, theirs: Lines) -> Agreed | Conflict:
    # Equal changes on both sides are not a conflict: the author may have applied capsmith's
    # changes by hand.
    if ours in (theirs, base):
        return Agreed(theirs)
    return Agreed(ours) if theirs == base else Conflict(base, ours, theirs)


def _regions(mine: tuple[_Hunk, ...], other: tuple[_Hunk, ...]) -> Iterator[tuple[int, int]]:
    """Yield the spans of the base that hunks cover; touching hunks are in the same span."""
    spans = sorted((hunk.start, hunk.end) for hunk in (*mine, *other))
    if not spans:
        return
    # Like git, treat hunks that only touch as one region, because the author may have replaced the
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
    """Return the number of lines that two sequences share at the start, and at the end.

    No line is counted twice.
    """
    shortest = min(len(one), len(other))
    head = next((i for i in range(shortest) if one[i] != other[i]), shortest)
    most = shortest - head
    tail = next((i for i in range(most) if one[-1 - i] != other[-1 - i]), most)
    return head, tail


def _hunks(base: Sequence[bytes], side: Sequence[bytes]) -> tuple[_Hunk, ...]:
    """Return the differences between ``base`` and ``side``, from top to bottom."""
    # Most edits are local; without the common ends, difflib sees only their surroundings.
    head, tail = count_common_ends(base, side)
    old, new = base[head : len(base) - tail], side[head : len(side) - tail]
    if not old and not new:
        return ()
    if _comparisons(old, new) > _MOST_COMPARISONS:
        return (_Hunk(head, head + len(old), head, head + len(new)),)
    # Imported here because most runs merge nothing.
    from difflib import SequenceMatcher

    # In files of 200 lines or more, autojunk would ignore frequent lines, such as closing braces,
    # and match unrelated parts instead.
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    return tuple(
        _Hunk(head + start, head + end, head + first, head + last)
        for tag, start, end, first, last in matcher.get_opcodes()
        if tag != "equal"
    )


def _comparisons(old: Sequence[bytes], new: Sequence[bytes]) -> int:
    """Return the number of pairs of equal lines, which determines the run time of difflib."""
    often = Counter(new)
    return sum(often[line] for line in old)
