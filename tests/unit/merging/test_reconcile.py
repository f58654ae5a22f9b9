"""The table of outcomes: nothing of the author's is ever replaced or removed."""

from __future__ import annotations

import pytest

from capsmith.errors import UnreadableInput
from capsmith.merging.lock import Lock, LockedFile
from capsmith.merging.reconcile import reconcile
from capsmith.report import Outcome
from capsmith.safetext import RelativePath
from capsmith.tree import FileTree, GeneratedFile, Owner, digest

G, M, S = Owner.GENERATED, Owner.MERGED, Owner.SCAFFOLD


def tree(owner: Owner, text: str = "new\n") -> FileTree:
    return FileTree.of([GeneratedFile(RelativePath("a/file"), text, owner)])


def lock(owner: Owner, text: str = "old\n") -> Lock:
    return Lock("1", ("v1beta2",), "sha256:0", {"a/file": LockedFile(owner, digest(text))})


@pytest.mark.parametrize(
    ("owner", "current", "locked", "outcome", "writes"),
    [
        (G, None, None, Outcome.CREATED, True),
        (G, "new\n", None, Outcome.UNCHANGED, False),
        (G, "foreign\n", None, Outcome.REFUSED, False),
        (G, "old\n", "old\n", Outcome.UPDATED, True),
        (G, "edited\n", "old\n", Outcome.REFUSED, False),
        (G, None, "old\n", Outcome.CREATED, True),
        (M, "old\n", "old\n", Outcome.UPDATED, True),
        (M, "edited\n", "new\n", Outcome.KEPT, False),
        (M, "edited\n", "old\n", Outcome.REFUSED, False),
        (M, "foreign\n", None, Outcome.REFUSED, False),
        (S, None, None, Outcome.CREATED, True),
        (S, "mine\n", None, Outcome.KEPT, False),
        (S, "mine\n", "old\n", Outcome.KEPT, False),
        (S, "old\n", "old\n", Outcome.KEPT, False),
        (S, None, "old\n", Outcome.KEPT, False),
    ],
)
def test_outcome_of_a_file_that_is_generated(
    owner: Owner, current: str | None, locked: str | None, outcome: Outcome, writes: bool
) -> None:
    on_disk = {} if current is None else {"a/file": current}
    known = None if locked is None else lock(owner, locked)
    (decision,) = reconcile(tree(owner), on_disk, known)
    assert decision.outcome is outcome
    assert (decision.file is not None) is writes


@pytest.mark.parametrize(
    ("owner", "current", "outcome"),
    [(G, "old\n", Outcome.REMOVED), (G, "edited\n", Outcome.KEPT), (S, "old\n", Outcome.KEPT)],
)
def test_outcome_of_a_file_that_is_no_longer_generated(
    owner: Owner, current: str, outcome: Outcome
) -> None:
    (decision,) = reconcile(FileTree(), {"a/file": current}, lock(owner))
    assert decision.outcome is outcome
    assert decision.file is None


def test_a_lock_says_again_what_it_was_told() -> None:
    told = Lock.of(tree(M), "0.1.0", ("v1beta2", "v1beta1"), "sha256:ab")
    assert Lock.load(told.dump(), "lock.yaml") == told


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "capsmith: 1",
        "files: {a: b}",
        "capsmith: 1\ncontracts: []\nspec: x\nfiles: {../escape: {owner: generated, digest: x}}",
        "capsmith: 1\ncontracts: []\nspec: x\nfiles: {a: {owner: nobody, digest: x}}",
    ],
)
def test_anything_else_is_not_a_lock(text: str) -> None:
    with pytest.raises(UnreadableInput) as caught:
        Lock.load(text, "lock.yaml")
    assert caught.value.finding.id == "lock-unreadable"


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
