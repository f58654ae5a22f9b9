"""Decide what to do with each file, given the incoming tree, the lock and the disk.  Pure.

Three contents of a path are compared by digest: what capsmith generates now (incoming), what it
generated last (the lock), and what is on disk.  The outcome depends on the file's owner, which the
row for the file in ``blueprints/manifest.yaml`` decides:

============  ===========================  ==========================  ==========================
owner         disk as last generated       disk edited                 disk deleted
============  ===========================  ==========================  ==========================
generated     replaced                     refused, unless --force     written again
merged        replaced                     merged three ways           stays deleted
scaffold      replaced, if capsmith never  kept                        stays deleted
              offered another version
============  ===========================  ==========================  ==========================

Invariants: content that the author wrote is only replaced if an option names it.  A file is only
removed if the lock proves that capsmith wrote exactly this content.  A file that the lock does not
list is never replaced.  A single refusal blocks the whole run: a repository is never half updated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from capsmith.merging.lock import Lock, LockedFile
from capsmith.merging.shared_file import (
    ConflictLabels,
    ConflictStyle,
    find_unresolved_conflict,
    has_crlf,
    merge_shared,
    verify_base,
)
from capsmith.report import Outcome
from capsmith.tree import FileTree, GeneratedFile, Owner, is_text_of


class Reason(StrEnum):
    """The reason for a decision, if it is not clear from the outcome."""

    NONE = ""
    EDITED = "edited"
    """The author edited a generated file."""
    TAKEN_BACK = "taken back"
    """An edited file is replaced because of --force."""
    FOREIGN = "foreign"
    """There is a file at the path that capsmith did not write."""
    WAS_YOURS = "was yours"
    """An edited file that was shared or the author's is now a generated file."""
    NOW_SHARED = "now shared"
    """A file that belonged to the author is now shared, so capsmith will update it."""
    NOT_TEXT = "not text"
    """A shared file cannot be merged, because it is not text."""
    IN_CONFLICT = "in conflict"
    """A shared file has an unresolved conflict, such as one of a merge of branches."""
    LEFT_OVER = "left over"
    """A file is no longer generated, but capsmith must not remove it."""
    UNEDITED_LEFT_OVER = "unedited left over"
    """A scaffold that the author never edited is no longer generated."""
    EDITED_LEFT_OVER = "edited left over"
    """A file that the author edited is no longer generated."""
    MINE_LEFT_OVER = "mine left over"
    """A file that the author took over is no longer generated."""
    ADOPTED = "adopted"
    """The author already has a file at a new scaffold's path."""
    BEHIND = "behind"
    """The author took over a file, and capsmith has new content for it."""
    SCAFFOLD_BEHIND = "scaffold behind"
    """The author edited a scaffold, and capsmith has new content for it."""
    SCAFFOLD_HELD = "scaffold held"
    """An unedited code scaffold is kept, because another one, which may call it, was edited or
    deleted."""
    REPLACED = "replaced"
    """An edited scaffold is replaced because of --restore and --force."""
    NOT_REPLACED = "not replaced"
    """An edited scaffold can only be replaced with --force."""


class Decision(NamedTuple):
    """The planned action for one path, and the reason for it."""

    path: str
    outcome: Outcome
    reason: Reason = Reason.NONE
    content: bytes | None = None
    """New file content; None to keep the file unchanged."""
    executable: bool | None = None
    """Whether to make the file executable; None to keep the permissions."""
    conflicts: tuple[int, ...] = ()
    """Line numbers in ``content`` where conflicts begin (1-based); in the file if it is refused."""


class OnDisk(NamedTuple):
    """The contents of existing files, and the merge bases of merged files, by path."""

    files: Mapping[str, bytes]
    base: Mapping[str, bytes]


class MergeOptions(NamedTuple):
    """Options for a merge, including which files may be replaced."""

    names: ConflictLabels
    style: ConflictStyle = ConflictStyle.MERGE
    force: bool = False
    """Whether to replace generated files that the author edited."""
    restore: frozenset[str] = frozenset()
    """Paths of files to write again: deleted files, and scaffolds for which capsmith has new
    content."""
    is_new_generator: bool = False
    """Whether another release of capsmith generated the existing files."""


def decide(
    incoming: FileTree, disk: OnDisk, lock: Lock | None, options: MergeOptions
) -> tuple[Decision, ...]:
    """Return a decision for each path in ``incoming`` and each leftover file, sorted by path.

    ``disk`` holds the existing files listed in ``incoming`` and ``lock``; ``lock`` is None on the
    first run. A file that the author edited is replaced only if ``options`` allows it.  A deleted
    scaffold or shared file stays deleted.  A generated file is removed only if the lock lists it
    and its digest still matches.  Raises UnreadableInput if a merge base is missing or has been
    altered.
    """
    locked = lock.files if lock is not None else {}
    # Within one release, the code scaffolds on disk and the new ones always fit together.
    held = options.is_new_generator and _has_edited_code(incoming, disk, locked, options)
    # Each file is decided independently, so the order of files cannot change an outcome.
    decisions = [_decide(file, disk, locked.get(file.path), options, held) for file in incoming]
    decisions += [
        _decide_left_over(path, disk.files[path], known, options)
        # Without a lock, nothing is left over, because capsmith cannot know that it wrote a file.
        for path, known in locked.items()
        if path in disk.files and path not in incoming
    ]
    return tuple(sorted(decisions, key=lambda decision: decision.path))


def settle(
    path: str, owner: Owner, digest: str, known: LockedFile | None, content: bytes | None
) -> Decision | None:
    """Return the decision for a file that need not change, or None if the file must change.

    ``owner`` and ``digest`` describe the content generated now, ``known`` is the file's entry in
    the lock, and ``content`` is on disk (None if the file does not exist).  `update --check` calls
    only this function, with digests from the lock and without generating anything, so it must not
    need the new content.
    """
    # First of all: a file that was taken over belongs to the author, whatever its usual owner.
    if known is not None and known.mine:
        reason = Reason.BEHIND if digest != known.digest else Reason.NONE
        return Decision(path, Outcome.KEPT, reason)
    if content is None:
        # Authors delete scaffolds and shared files on purpose, but a generated file is required.  A
        # file that was generated before was not the author's to delete, whatever its owner is now.
        needed = known is None or Owner.GENERATED in (owner, known.owner)
        return None if needed else Decision(path, Outcome.KEPT)
    if is_text_of(content, digest):
        return Decision(path, Outcome.UNCHANGED)
    if owner is Owner.SCAFFOLD:
        # An unedited scaffold follows capsmith, unless other content was offered before: the author
        # has seen it and deliberately left the file unchanged.
        if known is not None and not known.offered and is_text_of(content, known.digest):
            return None
        if known is None:
            return Decision(path, Outcome.KEPT, Reason.ADOPTED)
        is_reported = digest in (known.digest, known.offered)
        return Decision(path, Outcome.KEPT, Reason.NONE if is_reported else Reason.SCAFFOLD_BEHIND)
    # capsmith's side has not changed since the last merge, so there is nothing to merge.
    if known is not None and known.owner is owner is Owner.MERGED and known.digest == digest:
        return Decision(path, Outcome.KEPT)
    return None


def record_kept_scaffolds(
    decisions: Iterable[Decision], incoming: FileTree, disk: OnDisk, lock: Lock | None
) -> dict[str, LockedFile]:
    """Return the next lock's entries for scaffolds that this run keeps, by path.

    ``digest`` still identifies the content that the author started from.  ``offered`` records the
    content that this run reports, so that each new content is reported only once.
    """
    locked = lock.files if lock is not None else {}
    kept = {}
    for path in (each.path for each in decisions if each.outcome is Outcome.KEPT):
        known = locked.get(path)
        if known is None or path not in incoming or incoming[path].owner is not Owner.SCAFFOLD:
            continue
        digest = incoming[path].digest
        offered = digest if path in disk.files and digest != known.digest else ""
        kept[path] = LockedFile(Owner.SCAFFOLD, known.digest, known.mine, offered)
    return kept


def _has_edited_code(
    incoming: FileTree, disk: OnDisk, locked: Mapping[str, LockedFile], options: MergeOptions
) -> bool:
    """Return whether the author edited, or deleted, a code scaffold that has new content.

    Code scaffolds call one another.  Scaffolds of another release may not match the edited ones, so
    either all of them get their new content or none.
    """
    for file in incoming:
        known = locked.get(file.path)
        is_code = file.owner is Owner.SCAFFOLD and file.path.endswith(".py")
        if not is_code or known is None or file.digest == known.digest:
            continue
        content = disk.files.get(file.path)
        if content is not None and is_text_of(content, file.digest):
            continue
        if file.path not in options.restore and (
            content is None or not is_text_of(content, known.digest)
        ):
            return True
    return False


def _decide(
    file: GeneratedFile,
    disk: OnDisk,
    known: LockedFile | None,
    options: MergeOptions,
    is_code_held: bool,
) -> Decision:
    content = disk.files.get(file.path)
    is_mine = known is not None and known.mine
    # --restore takes precedence over everything that keeps a file, except that the author took it
    # over.
    if file.path in options.restore and not is_mine:
        restored = _restored(file, content, known, options)
        if restored is not None:
            return restored
    settled = settle(file.path, file.owner, file.digest, known, content)
    if settled is not None:
        return settled
    if content is None:
        return _written(file, Outcome.CREATED, b"")
    if known is None:
        # The path is new to capsmith, but a file exists, which may contain the author's work.
        return Decision(file.path, Outcome.REFUSED, Reason.FOREIGN)
    if is_text_of(content, known.digest):
        # Not edited, but it may call edited code that expects the former text.
        if is_code_held and file.owner is Owner.SCAFFOLD and file.path.endswith(".py"):
            return Decision(file.path, Outcome.KEPT, Reason.SCAFFOLD_HELD)
        return _written(file, Outcome.UPDATED, content)
    return _edited(file, content, known, disk, options)


def _restored(
    file: GeneratedFile, content: bytes | None, known: LockedFile | None, options: MergeOptions
) -> Decision | None:
    """Decide on a file that --restore names; return None if there is nothing to restore."""
    if content is None:
        return _written(file, Outcome.CREATED, b"")
    if file.owner is not Owner.SCAFFOLD or is_text_of(content, file.digest):
        return None
    if known is not None and is_text_of(content, known.digest):
        return _written(file, Outcome.UPDATED, content)
    if options.force:
        return _written(file, Outcome.UPDATED, content, Reason.REPLACED)
    return Decision(file.path, Outcome.REFUSED, Reason.NOT_REPLACED)


def _edited(
    file: GeneratedFile, content: bytes, known: LockedFile, disk: OnDisk, options: MergeOptions
) -> Decision:
    # The owner may have changed between releases; the owner of the edited text comes first.
    match known.owner, file.owner:
        case Owner.GENERATED, _:
            if options.force:
                return _written(file, Outcome.UPDATED, content, Reason.TAKEN_BACK)
            return Decision(file.path, Outcome.REFUSED, Reason.EDITED)
        case _, Owner.GENERATED:
            # Not even with --force, because the edits were allowed when they were made.
            return Decision(file.path, Outcome.REFUSED, Reason.WAS_YOURS)
        case Owner.SCAFFOLD, _:
            # There is no base to merge with; this text becomes capsmith's side of the next merge.
            return Decision(file.path, Outcome.KEPT, Reason.NOW_SHARED)
        case _:
            return _merged(file, content, known, disk, options)


def _merged(
    file: GeneratedFile, content: bytes, known: LockedFile, disk: OnDisk, options: MergeOptions
) -> Decision:
    base = verify_base(file.path, disk.base.get(file.path), known.digest)
    merged = merge_shared(base, content, file.text.encode(), options.style, options.names)
    if merged is None:
        return Decision(file.path, Outcome.REFUSED, Reason.NOT_TEXT)
    # The author already has capsmith's changes, for example after merging branches.
    if merged.content == content:
        return Decision(file.path, Outcome.KEPT)
    unresolved = find_unresolved_conflict(content)
    if unresolved is not None:
        # Markers around markers are hard to resolve, and git resolves no such file.
        reason = Reason.IN_CONFLICT
        return Decision(file.path, Outcome.REFUSED, reason, conflicts=(unresolved,))
    outcome = Outcome.CONFLICTED if merged.conflicts else Outcome.MERGED
    return Decision(file.path, outcome, content=merged.content, conflicts=merged.conflicts)


def _written(
    file: GeneratedFile, outcome: Outcome, former: bytes, reason: Reason = Reason.NONE
) -> Decision:
    """Return the decision to write ``file``, with the line endings of the ``former`` content."""
    text = file.text.encode()
    # A file that git checked out with CRLF keeps it: otherwise every line would show as changed.
    content = text.replace(b"\n", b"\r\n") if has_crlf(former) else text
    # The author may have made a scaffold or shared file executable.
    kept = outcome is Outcome.UPDATED and file.owner is not Owner.GENERATED
    return Decision(file.path, outcome, reason, content, None if kept else file.executable)


def _decide_left_over(
    path: str, content: bytes, known: LockedFile, options: MergeOptions
) -> Decision:
    """Decide on a file in the lock that is no longer generated."""
    if known.mine:
        return Decision(path, Outcome.KEPT, Reason.MINE_LEFT_OVER)
    is_edited = not is_text_of(content, known.digest)
    if known.owner is Owner.GENERATED and is_edited and not options.force:
        return Decision(path, Outcome.REFUSED, Reason.EDITED_LEFT_OVER)
    # A scaffold belongs to the author from the first day, whether edited or not.
    if is_edited:
        return Decision(path, Outcome.KEPT, Reason.LEFT_OVER)
    if known.owner is Owner.SCAFFOLD:
        return Decision(path, Outcome.KEPT, Reason.UNEDITED_LEFT_OVER)
    return Decision(path, Outcome.REMOVED)
