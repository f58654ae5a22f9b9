"""The table of outcomes: no text of the author is ever replaced or removed."""

from __future__ import annotations

import pytest

from capsmith.errors import UnreadableInput
from capsmith.merging.decide import Decision, MergeOptions, OnDisk, Reason, decide
from capsmith.merging.lock import Lock, LockedFile
from capsmith.merging.shared_file import ConflictLabels
from capsmith.report import Outcome
from capsmith.safetext import RelativePath
from capsmith.tree import FileTree, GeneratedFile, Owner, digest

NAMES = ConflictLabels("yours", "before", "capsmith")
G, M, S = Owner.GENERATED, Owner.MERGED, Owner.SCAFFOLD


def tree(owner: Owner, text: str = "new\n") -> FileTree:
    return FileTree.of([GeneratedFile(RelativePath("a/file"), text, owner)])


def lock(owner: Owner, text: str = "old\n", mine: bool = False) -> Lock:
    return Lock("1", ("v1beta2",), "sha256:0", {"a/file": LockedFile(owner, digest(text), mine)})


def decided(
    incoming: FileTree,
    current: str | None,
    known: Lock | None,
    *,
    base: str | None = "old\n",
    force: bool = False,
    restore: tuple[str, ...] = (),
) -> Decision:
    disk = OnDisk(
        {} if current is None else {"a/file": current.encode()},
        {} if base is None else {"a/file": base.encode()},
    )
    wishes = MergeOptions(NAMES, force=force, restore=frozenset(restore))
    (decision,) = decide(incoming, disk, known, wishes)
    return decision


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
        (M, "edited\n", "old\n", Outcome.CONFLICTED, True),
        (M, "mine\nold\n", "old\n", Outcome.CONFLICTED, True),
        (M, "new\n", "old\n", Outcome.UNCHANGED, False),
        (M, "b\0nary", "old\n", Outcome.REFUSED, False),
        (M, None, "old\n", Outcome.KEPT, False),
        (M, None, None, Outcome.CREATED, True),
        (M, "foreign\n", None, Outcome.REFUSED, False),
        (S, None, None, Outcome.CREATED, True),
        (S, "mine\n", None, Outcome.KEPT, False),
        (S, "mine\n", "old\n", Outcome.KEPT, False),
        (S, "old\n", "old\n", Outcome.UPDATED, True),
        (S, None, "old\n", Outcome.KEPT, False),
    ],
)
def test_outcome_of_a_file_that_is_generated(
    owner: Owner, current: str | None, locked: str | None, outcome: Outcome, writes: bool
) -> None:
    decision = decided(tree(owner), current, None if locked is None else lock(owner, locked))
    assert decision.outcome is outcome
    assert (decision.content is not None) is writes


@pytest.mark.parametrize(
    ("before", "now", "current", "outcome", "reason"),
    [
        (S, G, "old\n", Outcome.UPDATED, Reason.NONE),
        (S, G, "mine\n", Outcome.REFUSED, Reason.WAS_YOURS),
        (S, G, None, Outcome.CREATED, Reason.NONE),
        (S, M, "old\n", Outcome.UPDATED, Reason.NONE),
        (S, M, "mine\n", Outcome.KEPT, Reason.NOW_SHARED),
        (S, M, None, Outcome.KEPT, Reason.NONE),
        (M, G, "old\n", Outcome.UPDATED, Reason.NONE),
        (M, G, "mine\n", Outcome.REFUSED, Reason.WAS_YOURS),
        (M, S, "mine\n", Outcome.KEPT, Reason.SCAFFOLD_BEHIND),
        (M, S, "old\n", Outcome.UPDATED, Reason.NONE),
        (G, M, "old\n", Outcome.UPDATED, Reason.NONE),
        (G, M, "mine\n", Outcome.REFUSED, Reason.EDITED),
        (G, M, None, Outcome.CREATED, Reason.NONE),
        (G, S, "mine\n", Outcome.KEPT, Reason.SCAFFOLD_BEHIND),
        (G, S, "old\n", Outcome.UPDATED, Reason.NONE),
    ],
)
def test_outcome_of_a_file_that_changes_hands(
    before: Owner, now: Owner, current: str | None, outcome: Outcome, reason: Reason
) -> None:
    decision = decided(tree(now), current, lock(before))
    assert (decision.outcome, decision.reason) == (outcome, reason)
    # To force replaces what was capsmith's alone, and nothing else.
    forced = decided(tree(now), current, lock(before), force=True)
    assert (forced.outcome != outcome) is (reason is Reason.EDITED)


def test_force_replaces_an_edited_generated_file() -> None:
    decision = decided(tree(G), "mine\n", lock(G), force=True)
    assert (decision.outcome, decision.reason) == (Outcome.UPDATED, Reason.TAKEN_BACK)
    assert decision.content == b"new\n"


@pytest.mark.parametrize("owner", [M, S])
def test_a_deleted_file_comes_back_when_it_is_named(owner: Owner) -> None:
    assert decided(tree(owner), None, lock(owner)).outcome is Outcome.KEPT
    decision = decided(tree(owner), None, lock(owner), restore=("a/file",))
    assert (decision.outcome, decision.content) == (Outcome.CREATED, b"new\n")


@pytest.mark.parametrize("owner", [G, M, S])
@pytest.mark.parametrize("current", ["mine\n", "old\n", None])
def test_a_file_that_was_taken_over_is_left_alone(owner: Owner, current: str | None) -> None:
    decision = decided(tree(owner), current, lock(owner, mine=True), force=True)
    assert (decision.outcome, decision.reason) == (Outcome.KEPT, Reason.BEHIND)
    decision = decided(tree(owner, "old\n"), current, lock(owner, mine=True))
    assert (decision.outcome, decision.reason) == (Outcome.KEPT, Reason.NONE)


@pytest.mark.parametrize("owner", [G, M])
def test_line_ends_of_another_system_are_no_edit_and_stay(owner: Owner) -> None:
    assert decided(tree(owner), "new\r\n", lock(owner)).outcome is Outcome.UNCHANGED
    decision = decided(tree(owner), "old\r\n", lock(owner), base="old\r\n")
    assert (decision.outcome, decision.content) == (Outcome.UPDATED, b"new\r\n")
    assert decide(
        FileTree(), OnDisk({"a/file": b"old\r\n"}, {}), lock(owner), MergeOptions(NAMES)
    ) == (
        Decision("a/file", Outcome.REMOVED),
    )


@pytest.mark.parametrize("base", [None, "another\n"])
def test_a_base_that_is_missing_or_altered_is_never_guessed_at(base: str | None) -> None:
    with pytest.raises(UnreadableInput) as caught:
        decided(tree(M), "edited\n", lock(M), base=base)
    assert caught.value.finding.location.file == ".capsmith/base/a/file"
    # It is not needed for a file without edits, nor for one that has nothing new.
    assert decided(tree(M), "old\n", lock(M), base=base).outcome is Outcome.UPDATED
    assert decided(tree(M, "old\n"), "edited\n", lock(M), base=base).outcome is Outcome.KEPT


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize(
    ("owner", "current", "outcome"),
    [
        (G, "old\n", Outcome.REMOVED),
        (G, "edited\n", Outcome.KEPT),
        (M, "old\n", Outcome.REMOVED),
        (M, "edited\n", Outcome.KEPT),
        (S, "old\n", Outcome.KEPT),
    ],
)
def test_outcome_of_a_file_that_is_no_longer_generated(
    owner: Owner, current: str, outcome: Outcome, force: bool
) -> None:
    decision = decided(FileTree(), current, lock(owner), force=force)
    is_refused = owner is G and current == "edited\n" and not force
    assert decision.outcome is (Outcome.REFUSED if is_refused else outcome)
    assert decision.content is None
