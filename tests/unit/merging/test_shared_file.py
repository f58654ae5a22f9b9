"""A shared file keeps its form and the author's bytes, and says where sides are in conflict."""

from __future__ import annotations

import pytest

from capsmith.merging.shared_file import (
    ConflictLabels,
    ConflictStyle,
    Merged,
    find_conflict_markers,
    find_unresolved_conflict,
    merge_shared,
)
from capsmith.merging.three_way import Agreed, merge
from tests.counting import counted_calls

NAMES = ConflictLabels("yours", "before", "capsmith 2")
BASE = b"one\ntwo\nthree\nfour\nfive\n"


def merged(
    ours: bytes, theirs: bytes, base: bytes = BASE, style: ConflictStyle = ConflictStyle.MERGE
) -> Merged | None:
    return merge_shared(base, ours, theirs, style, NAMES)


def clean(ours: bytes, theirs: bytes, base: bytes = BASE) -> bytes:
    result = merged(ours, theirs, base)
    assert result is not None
    assert result.conflicts == ()
    return result.content


def test_changes_in_different_places_are_both_there() -> None:
    ours, theirs = BASE.replace(b"one", b"1"), BASE.replace(b"five", b"5")
    assert clean(ours, theirs) == b"1\ntwo\nthree\nfour\n5\n"
    assert clean(b"zero\n" + BASE, BASE + b"six\n") == b"zero\n" + BASE + b"six\n"
    assert clean(BASE.replace(b"two\n", b""), theirs) == b"one\nthree\nfour\n5\n"


def test_the_same_change_is_made_once() -> None:
    both = BASE.replace(b"two", b"2")
    assert clean(both, both) == both
    assert clean(both, both.replace(b"five", b"5")) == both.replace(b"five", b"5")


@pytest.mark.parametrize("style", ConflictStyle)
def test_a_conflict_has_both_sides_between_markers(style: ConflictStyle) -> None:
    ours, theirs = BASE.replace(b"two", b"mine"), BASE.replace(b"two", b"theirs")
    origin = b"||||||| before\ntwo\n" if style is ConflictStyle.DIFF3 else b""
    assert merged(ours, theirs, style=style) == Merged(
        b"one\n<<<<<<< yours\nmine\n" + origin + b"=======\ntheirs\n>>>>>>> capsmith 2\n"
        b"three\nfour\nfive\n",
        (2,),
    )


def test_lines_that_both_sides_agree_on_are_not_in_the_conflict() -> None:
    result = merged(b"a\nmine\nz\n", b"a\ntheirs\nz\n", base=b"old\n")
    assert result == Merged(
        b"a\n<<<<<<< yours\nmine\n=======\ntheirs\n>>>>>>> capsmith 2\nz\n", (2,)
    )
    whole = merged(b"a\nmine\n", b"a\ntheirs\n", base=b"old\n", style=ConflictStyle.DIFF3)
    assert whole is not None
    assert whole.content.startswith(b"<<<<<<< yours\na\nmine\n||||||| before\nold\n=======\na\n")


def test_every_conflict_is_counted_where_it_stands() -> None:
    ours = BASE.replace(b"one", b"1").replace(b"five", b"5")
    theirs = BASE.replace(b"one", b"I").replace(b"five", b"V")
    result = merged(ours, theirs)
    assert result is not None
    lines = result.content.split(b"\n")
    assert [lines[number - 1] for number in result.conflicts] == [b"<<<<<<< yours"] * 2


def test_deleting_what_the_other_side_changes_is_a_conflict() -> None:
    theirs = BASE.replace(b"two", b"2")
    result = merged(BASE.replace(b"two\n", b""), theirs)
    assert result is not None
    assert b"<<<<<<< yours\n=======\n2\n>>>>>>> capsmith 2\n" in result.content
    assert merged(b"", theirs) == Merged(
        b"<<<<<<< yours\n=======\n" + theirs + b">>>>>>> capsmith 2\n", (1,)
    )


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("last", [True, False])
def test_the_form_of_the_authors_file_stays(end: bytes, mark: bytes, last: bool) -> None:
    def formed(text: bytes) -> bytes:
        return mark + (text if last else text.removesuffix(b"\n")).replace(b"\n", end)

    ours, theirs = BASE.replace(b"two", b"\xe9\xff"), b"zero\n" + BASE
    assert clean(formed(ours), theirs) == formed(b"zero\n" + ours)
    conflict = merged(formed(ours), BASE.replace(b"two", b"2"))
    assert conflict is not None
    assert conflict.content == formed(
        b"one\n<<<<<<< yours\n\xe9\xff\n=======\n2\n>>>>>>> capsmith 2\nthree\nfour\nfive\n"
    )


def test_a_marker_at_the_end_has_a_line_of_its_own() -> None:
    result = merged(b"one\ntwo\nmine", b"one\ntwo\ntheirs\n", base=b"one\ntwo\nold\n")
    assert result is not None
    assert result.content.endswith(b"mine\n=======\ntheirs\n>>>>>>> capsmith 2\n")


def test_mixed_line_ends_are_the_authors() -> None:
    ours = b"one\r\ntwo\nthree\nfour\nfive\r\n"
    assert clean(ours, BASE.replace(b"three", b"3")) == ours.replace(b"three", b"3")


def test_what_is_no_text_is_not_merged() -> None:
    assert merged(b"\0" + BASE, BASE + b"six\n") is None
    assert merged(BASE.decode().encode("utf-16"), BASE + b"six\n") is None


def test_markers_that_are_left_are_found() -> None:
    ours, theirs = BASE.replace(b"two", b"mine"), BASE.replace(b"two", b"theirs")
    result = merged(ours, theirs, style=ConflictStyle.DIFF3)
    assert result is not None
    assert find_conflict_markers(result.content, NAMES, [ours, theirs]) == (2, 4, 6, 8)
    in_windows = result.content.replace(b"\n", b"\r\n")
    assert find_conflict_markers(b"\xef\xbb\xbf" + in_windows, NAMES, [ours, theirs]) == (
        2,
        4,
        6,
        8,
    )
    assert find_conflict_markers(b"one\n=======\n", NAMES, [ours, theirs]) == (2,)
    assert find_conflict_markers(b"Title\n=======\n", NAMES, [b"Title\n=======\n", theirs]) == ()
    # Markers of git are none of these.
    assert find_conflict_markers(b"<<<<<<< HEAD\n", NAMES, [ours, theirs]) == ()


def test_a_merge_of_many_equal_lines_costs_little() -> None:
    base = [b"same"] * 20_000
    ours = [b"mine", *base[:-5], b"end"]
    theirs = [*base[:10_000], b"theirs", *base[10_000:]]
    with counted_calls("call", "c_call") as calls:
        chunks = merge(base, ours, theirs)
    assert calls[0] < 500_000, "a comparison of all pairs of lines takes 400 million"
    assert not all(isinstance(chunk, Agreed) for chunk in chunks)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"one\n<<<<<<< HEAD\nmine\n=======\ntheirs\n>>>>>>> other\n", 2),
        (b"<<<<<<< HEAD\r\n||||||| base\r\n=======\r\n>>>>>>> other\r\n", 1),
        (b"\xef\xbb\xbf<<<<<<< HEAD\n=======\n>>>>>>> other", 1),
        (b"Title\n=======\n>>>>>>> quoted\n", None),
        (b"<<<<<<< HEAD\n>>>>>>> other\n=======\n", None),
        (b"    <<<<<<< HEAD\n    =======\n    >>>>>>> other\n", None),
        (b"<<<<<<< HEAD\nTitle\n=======\n", None),
    ],
)
def test_a_conflict_of_any_tool_is_found(content: bytes, line: int | None) -> None:
    assert find_unresolved_conflict(content) == line
