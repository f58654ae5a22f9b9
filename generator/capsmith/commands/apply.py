"""Apply a plan, and finish or undo an update that left conflicts.

An update with conflicts has two halves.  The first writes all files, with conflict markers, and
stores the previous contents, the new lock and the new bases in ``.capsmith/unfinished``.  After the
author has resolved the conflicts, the second moves the lock and the bases into place
(``--continue``), or restores the previous contents (``--abort``).  In between, the lock and the
bases are not updated, because they describe what capsmith generated, and the files' final content
is not yet known while they contain markers.
"""

from __future__ import annotations

from collections.abc import Iterable

from capsmith.commands.plan import Plan
from capsmith.commands.preconditions import STATE_HINT
from capsmith.errors import Refused, UnreadableInput
from capsmith.findings import Finding, Location, Severity
from capsmith.merging.lock import BASE_FOLDER
from capsmith.merging.shared_file import find_conflict_markers
from capsmith.merging.unfinished import STATE_PATH, Touched, Unfinished, locate_kept_text
from capsmith.report import FileOutcome, Outcome, Report
from capsmith.tree import digest, restore_line_ends
from capsmith.workspace.repository import Change, Repository

_MOST_NAMED = 8


def apply_plan(repository: Repository, plan: Plan) -> None:
    """Apply ``plan``, or do nothing if the plan cannot be applied.

    If there are conflicts, the lock and the bases stay unchanged until :func:`conclude`, and the
    previous contents are stored for :func:`abort`.  Raises the same errors as
    :meth:`Repository.apply`.
    """
    if not plan.is_possible:
        return
    change = plan.change
    if plan.conflicts:
        _note_unfinished(repository, plan)
    else:
        change.writes.update(plan.records.writes)
        change.removals.update(plan.records.removals)
    repository.apply(change)


def conclude(repository: Repository, *, force: bool = False) -> Report:
    """Finish an update whose conflicts the author has resolved, or report any that remain.

    Raises Refused if no update is unfinished, or if other files have their former content again,
    unless ``force`` is set.  Raises UnreadableInput for records that capsmith did not write.
    """
    # Read first, because completing removes the record.  An interrupted --abort can only be
    # completed as an abort, and a --continue after it must not claim that the update is finished.
    was_undoing = repository.is_undoing
    completed = repository.complete_pending()
    if was_undoing:
        message = "the interrupted undo of the update is complete: the previous state is restored"
        return _concluded(repository, completed, "continue", message)
    unfinished = _unfinished(repository)
    if unfinished is None:
        return _concluded(repository, completed, "continue", "the interrupted update is complete")
    if not force:
        _refuse_undone(repository, unfinished)
    found = [f for path in unfinished.conflicts for f in _markers(repository, unfinished, path)]
    if found:
        return Report(tuple(found), _outcomes(unfinished.conflicts, Outcome.CONFLICTED))
    change = Change()
    for path, kept in unfinished.records.items():
        if kept:
            change.write(path, _kept(repository, kept))
        else:
            change.remove(path)
    # In the same change: a state file that stayed behind would let --abort undo a finished update.
    _remove_notes(repository, change, unfinished)
    repository.apply(change)
    return Report(outcomes=_outcomes(unfinished.conflicts, Outcome.MERGED))


def abort(repository: Repository, *, force: bool = False) -> Report:
    """Restore the state before an update that left conflicts or was interrupted.

    The author's resolutions are lost.  If other files written by the update have been edited since,
    they are reported, and nothing is restored unless ``force`` is set.  Raises Refused if no update
    is unfinished, and UnreadableInput for records that capsmith did not write.
    """
    undone = repository.undo_pending()
    unfinished = _unfinished(repository)
    if unfinished is None:
        return _concluded(
            repository, undone, "abort", "the state before the interrupted run is restored"
        )
    # The author is expected to edit files with conflicts, and this work is discarded with the
    # update.  In any other file that the update wrote, edits are work that the author does not
    # expect to lose.
    paths = tuple(unfinished.touched)
    present = repository.read_existing(paths)
    edited = [
        path
        for path, file in unfinished.touched.items()
        if path not in unfinished.conflicts
        and not _has_state(present.get(path), file.before)
        and not _has_state(present.get(path), file.after)
    ]
    if edited and not force:
        return Report(tuple(_edited(path) for path in edited), _outcomes(edited, Outcome.REFUSED))
    change = Change()
    for path, file in unfinished.touched.items():
        if not file.before and path in present:
            change.remove(path)
        # Files that are already in their former state, by an edit or through git, are not written
        # again.
        elif file.before and not _has_state(present.get(path), file.before):
            change.write(path, _kept(repository, file.before), mode=file.mode)
    restored = _outcomes(change.writes, Outcome.UPDATED) + _outcomes(
        change.removals, Outcome.REMOVED
    )
    _remove_notes(repository, change, unfinished)
    repository.apply(change)
    return Report(outcomes=restored)


def _note_unfinished(repository: Repository, plan: Plan) -> None:
    change, records = plan.change, plan.records
    touched = {}
    for path in sorted({*change.writes, *change.removals}):
        before = repository.read_bytes(path)
        after = change.writes.get(path)
        touched[path] = Touched(
            _state(before),
            _state(after.content if after else None),
            repository.read_permissions(path),
        )
        if before is not None:
            change.write(locate_kept_text(digest(before)), before)
    noted = {path: digest(write.content) for path, write in records.writes.items()}
    noted |= dict.fromkeys(records.removals, "")
    # Stored by digest, so that a later `--continue` can verify the content.
    for write in records.writes.values():
        change.write(locate_kept_text(digest(write.content)), write.content)
    change.write(STATE_PATH, Unfinished(plan.names, plan.conflicts, touched, noted).dump())


def _unfinished(repository: Repository) -> Unfinished | None:
    text = repository.read_text(STATE_PATH)
    return Unfinished.load(text, str(repository.folder / STATE_PATH)) if text is not None else None


def _remove_notes(repository: Repository, change: Change, unfinished: Unfinished) -> None:
    change.remove(STATE_PATH)
    for kept in unfinished.kept:
        if repository.read_bytes(locate_kept_text(kept)) is not None:
            change.remove(locate_kept_text(kept))


def _refuse_undone(repository: Repository, unfinished: Unfinished) -> None:
    """Raise Refused if files that the update changed have their former content again.

    ``git stash`` and ``git checkout`` do that.  The new lock would describe files that do not
    exist, and all changes of shared files would count as rejected by the author.
    """
    changed = {path for path, file in unfinished.touched.items() if file.before}
    present = repository.read_existing(changed - {*unfinished.conflicts})
    undone = [
        path
        for path, content in present.items()
        if _has_state(content, unfinished.touched[path].before)
    ]
    if not undone:
        return
    rest = f" and {len(undone) - _MOST_NAMED} more" if len(undone) > _MOST_NAMED else ""
    raise Refused(
        "update-undone",
        "files that the update changed have their former content again: "
        f"{', '.join(undone[:_MOST_NAMED])}{rest}",
        file=str(repository.folder),
        hint="Bring the update back, for example with git stash pop.  Or run capsmith update "
        "--abort, and update again.  To keep the files as they are, add --force.",
    )


def _markers(repository: Repository, unfinished: Unfinished, path: str) -> list[Finding]:
    content = repository.read_bytes(path)
    if content is None:  # deleting the file resolves its conflict
        return []
    # The author's or capsmith's text may already have had a bare ======= before the merge.
    kept = (unfinished.touched[path].before, unfinished.records.get(f"{BASE_FOLDER}/{path}"))
    merged = [_kept(repository, each) for each in kept if each]
    lines = find_conflict_markers(content, unfinished.names, merged)
    return [
        Finding(
            "update-conflict",
            "the file still contains a conflict marker",
            Location(path, line, 1),
            hint="Edit the lines to the final text, remove the marker, and run this again.",
        )
        for line in lines
    ]


def _kept(repository: Repository, kept: str) -> bytes:
    content = repository.read_bytes(locate_kept_text(kept))
    # Contents are stored under their digests, so a damaged or exchanged one is detected.  git
    # stash may have converted the line endings.
    found = restore_line_ends(content, kept) if content is not None else None
    if found is None:
        raise UnreadableInput(
            "unfinished-damaged",
            "this file is required to finish the update, but it is missing or was changed",
            file=locate_kept_text(kept),
            hint="Restore the whole folder from version control, and run the update again.",
        )
    return found


def _concluded(repository: Repository, done: bool, option: str, message: str) -> Report:
    folder = str(repository.folder)
    if not done:
        raise Refused(
            f"nothing-to-{option}",
            f"no unfinished update to {option}",
            file=folder,
            hint="Run capsmith update to start one.",
        )
    concluded = Finding("update-concluded", message, Location(folder), Severity.INFO, STATE_HINT)
    return Report((concluded,))


def _edited(path: str) -> Finding:
    return Finding(
        "abort-edited",
        "this file was edited after the update wrote it",
        Location(path),
        hint="Save the edit elsewhere and run this again with --force, or resolve the conflicts "
        "and continue.",
    )


def _outcomes(paths: Iterable[str], outcome: Outcome) -> tuple[FileOutcome, ...]:
    return tuple(FileOutcome(path, outcome) for path in sorted(paths))


def _has_state(content: bytes | None, state: str) -> bool:
    """Return whether a file has the state that :func:`_state` returned, whatever its line ends."""
    if content is None or not state:
        return _state(content) == state
    return restore_line_ends(content, state) is not None


def _state(content: bytes | None) -> str:
    return digest(content) if content is not None else ""
