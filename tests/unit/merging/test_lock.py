"""The lock returns what was stored in it, and nothing else is read as a lock."""

from __future__ import annotations

import pytest

from capsmith.errors import UnreadableInput
from capsmith.merging.lock import Lock
from capsmith.safetext import RelativePath
from capsmith.tree import FileTree, GeneratedFile, Owner


def test_a_lock_round_trips() -> None:
    tree = FileTree.of(
        [GeneratedFile(RelativePath(path), "text", Owner.MERGED) for path in ("a/file", "mine")]
    )
    told = Lock.of(tree, "0.1.0", ("v1beta2", "v1beta1"), "sha256:ab").hand_over({"mine"}, ())
    assert told.mine == {"mine"}
    assert Lock.load(told.dump(), "lock.yaml") == told


def test_entries_of_files_taken_over_are_kept() -> None:
    def tree(text: str, *paths: str) -> FileTree:
        return FileTree.of([GeneratedFile(RelativePath(p), text, Owner.MERGED) for p in paths])

    first = Lock.of(tree("old", "a", "b", "c"), "1", (), "x").hand_over({"a", "c"}, ())
    later = Lock.of(tree("new", "a", "b"), "2", (), "y", first)
    assert later.mine == {"a"}
    assert later.files["a"] == first.files["a"]
    assert later.files["b"] != first.files["b"]
    back = later.hand_over((), {"a"})
    assert back.mine == frozenset()
    assert back.files["a"].digest == first.files["a"].digest


FORGED = [
    "provider.yaml",
    ".capsmith/lock.yaml",
    ".CAPSMITH/base/Makefile",
    ".capsmith/stage/new/a",
]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "capsmith: 1",
        "capsmith: !!int ''",
        "capsmith: !!bool maybe",
        "files: {a: b}",
        "capsmith: 1\ncontracts: []\nspec: x\nfiles: {../escape: {owner: generated, digest: x}}",
        "capsmith: 1\ncontracts: []\nspec: x\nfiles: {a: {owner: nobody, digest: x}}",
        *(
            f"capsmith: 1\ncontracts: []\nspec: x\nfiles: {{{path}: {{owner: merged, digest: x}}}}"
            for path in FORGED
        ),
    ],
)
def test_anything_else_is_not_a_lock(text: str) -> None:
    with pytest.raises(UnreadableInput) as caught:
        Lock.load(text, "lock.yaml")
    assert caught.value.finding.id == "lock-unreadable"


def test_a_lock_whose_aliases_multiply_is_refused() -> None:
    names = [
        f"m{number}: &m{number} {{<<: [*m{number - 1}, *m{number - 1}]}}" for number in range(1, 60)
    ]
    with pytest.raises(UnreadableInput):
        Lock.load("\n".join(["m0: &m0 {a: 1}", *names]), "lock.yaml")


@pytest.mark.parametrize("deep", ["a: " + "[" * 100_000, "{" * 100_000, "- " * 100_000 + "a"])
def test_a_lock_that_is_nested_without_end_is_refused(deep: str) -> None:
    with pytest.raises(UnreadableInput):
        Lock.load(deep, "lock.yaml")


@pytest.mark.parametrize(
    ("lock", "here", "newer"),
    [
        ("0.2.0", "0.1.0", True),
        ("0.10.0", "0.9.1", True),
        ("0.1.0", "0.1.0", False),
        ("0.1", "0.1.0.dev3", False),
        ("junk", "0.1.0", False),
    ],
)
def test_which_lock_is_newer(lock: str, here: str, newer: bool) -> None:
    assert Lock(lock, (), "", {}).is_newer_than(here) is newer
