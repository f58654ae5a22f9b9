"""Whatever the texts: the merge keeps what three-way merges promise, and agrees with git's."""

from __future__ import annotations

import subprocess
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from capsmith.merging.shared_file import ConflictLabels, ConflictStyle, merge_shared
from capsmith.merging.three_way import Agreed, Conflict, merge

NAMES = ConflictLabels("ours", "base", "theirs")
LINES = st.lists(st.sampled_from([b"", b"a", b"b", b"c", b"\r", b"\xe9", b"======="]), max_size=12)


def picked(chunks: tuple[Agreed | Conflict, ...], side: str) -> tuple[bytes, ...]:
    """Return the merge with every conflict resolved in favour of one side."""
    lines: tuple[bytes, ...] = ()
    for chunk in chunks:
        lines += chunk.lines if isinstance(chunk, Agreed) else getattr(chunk, side)
    return lines


@given(LINES, LINES)
def test_without_a_change_of_theirs_all_is_ours(base: list[bytes], ours: list[bytes]) -> None:
    for chunks in (merge(base, ours, base), merge(base, base, ours), merge(base, ours, ours)):
        assert all(isinstance(chunk, Agreed) for chunk in chunks)
        assert picked(chunks, "ours") == tuple(ours)


@given(LINES, LINES, LINES)
def test_sides_are_treated_alike(base: list[bytes], ours: list[bytes], theirs: list[bytes]) -> None:
    swapped = tuple(
        Conflict(chunk.base, chunk.theirs, chunk.ours) if isinstance(chunk, Conflict) else chunk
        for chunk in merge(base, theirs, ours)
    )
    assert merge(base, ours, theirs) == swapped


@given(LINES, LINES, LINES)
def test_what_a_side_added_is_there_once_conflicts_are_decided_for_it(
    base: list[bytes], ours: list[bytes], theirs: list[bytes]
) -> None:
    chunks = merge(base, ours, theirs)
    for side, lines in (("ours", ours), ("theirs", theirs)):
        decided = picked(chunks, side)
        for line in set(lines):
            assert decided.count(line) >= min(1, lines.count(line) - base.count(line))


@given(st.binary(max_size=60), st.binary(max_size=60), LINES, st.sampled_from(ConflictStyle))
def test_any_bytes_of_the_author_are_there_again_if_capsmith_has_nothing_new(
    ours: bytes, end: bytes, base: list[bytes], style: ConflictStyle
) -> None:
    text = b"".join(line + b"\n" for line in base)
    for content in (ours, text + end, ours + text.replace(b"\n", b"\r\n")):
        merged = merge_shared(text, content, text, style, NAMES)
        if b"\0" in content:
            assert merged is None
        else:
            assert merged is not None
            assert (merged.content, merged.conflicts) == (content, ())


DISTINCT = [b"%d" % number for number in range(12)]
EDITS = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 3), st.integers(0, 3)), max_size=3
).map(tuple)


def edited(who: bytes, edits: tuple[tuple[int, int, int], ...]) -> bytes:
    """Return lines, all different, some of which were replaced by other different lines."""
    lines = list(DISTINCT)
    for number, (start, removed, added) in enumerate(edits):
        lines[start : start + removed] = [b"%s%d.%d" % (who, number, n) for n in range(added)]
    return b"".join(line + b"\n" for line in lines)


@settings(
    max_examples=200,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(EDITS, EDITS)
@example(((3, 1, 1),), ((4, 1, 1),))
@example(((3, 0, 1),), ((3, 0, 1),))
def test_git_comes_to_the_same_result(
    tmp_path: Path, mine: tuple[tuple[int, int, int], ...], other: tuple[tuple[int, int, int], ...]
) -> None:
    texts = {"base": edited(b"", ()), "ours": edited(b"m", mine), "theirs": edited(b"t", other)}
    for name, text in texts.items():
        (tmp_path / name).write_bytes(text)
    command = ["git", "merge-file", "-p", "--diff3", *(f"-L{name}" for name in texts_in_order())]
    done = subprocess.run(
        [*command, *texts_in_order()], cwd=tmp_path, stdout=subprocess.PIPE, check=False
    )
    merged = merge_shared(texts["base"], texts["ours"], texts["theirs"], ConflictStyle.DIFF3, NAMES)
    assert merged is not None
    assert (done.stdout, done.returncode) == (merged.content, len(merged.conflicts))


def texts_in_order() -> tuple[str, str, str]:
    return "ours", "base", "theirs"
