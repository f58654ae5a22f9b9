"""What to do to each file: the incoming tree against the lock and what is on disk.  Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from capsmith.merging.lock import Lock
from capsmith.report import Outcome
from capsmith.tree import FileTree, GeneratedFile, Owner, digest


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome for one path; ``file`` is what to write, None to write nothing."""

    path: str
    outcome: Outcome
    file: GeneratedFile | None = None


def reconcile(
    incoming: FileTree, current: Mapping[str, str], lock: Lock | None
) -> tuple[Decision, ...]:
    """One decision a path, sorted by path.

    ``current`` holds the text of those paths of ``incoming`` and ``lock`` that exist on disk.
    A file of the author's is never replaced, a deleted scaffold stays deleted, and a generated
    file is removed only if the lock lists it with the digest that it still has.
    """
    locked = lock.files if lock is not None else {}
    decisions = [_incoming(file, current.get(file.path), lock) for file in incoming]
    decisions += [
        _orphan(path, current[path], lock)
        for path in locked
        if path in current and path not in incoming and lock is not None
    ]
    return tuple(sorted(decisions, key=lambda decision: decision.path))


def _incoming(file: GeneratedFile, text: str | None, lock: Lock | None) -> Decision:
    known = lock.files.get(file.path) if lock is not None else None
    if text is None:
        if known is not None and file.owner is Owner.SCAFFOLD:
            return Decision(file.path, Outcome.KEPT)
        return Decision(file.path, Outcome.CREATED, file)
    if text == file.text:
        return Decision(file.path, Outcome.UNCHANGED)
    if file.owner is Owner.SCAFFOLD:
        return Decision(file.path, Outcome.KEPT)
    if known is None:
        return Decision(file.path, Outcome.REFUSED)
    if digest(text) == known.digest:
        return Decision(file.path, Outcome.UPDATED, file)
    if file.owner is Owner.MERGED and file.digest == known.digest:
        return Decision(file.path, Outcome.KEPT)
    return Decision(file.path, Outcome.REFUSED)


def _orphan(path: str, text: str, lock: Lock) -> Decision:
    known = lock.files[path]
    if known.owner is Owner.SCAFFOLD or digest(text) != known.digest:
        return Decision(path, Outcome.KEPT)
    return Decision(path, Outcome.REMOVED)
