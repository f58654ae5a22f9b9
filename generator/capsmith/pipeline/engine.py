"""What `generate` and `update` share: a repository against what its provider.yaml asks for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from capsmith import __version__
from capsmith.errors import Refused
from capsmith.findings import Finding, has_errors, ordered
from capsmith.merging.differing import difference
from capsmith.merging.lock import BASE_FOLDER, LOCK_PATH, Lock
from capsmith.merging.reconcile import Decision, OnDisk, Reason, Wishes, reconcile
from capsmith.merging.remarks import (
    not_restored,
    not_returnable,
    not_takeable,
    refused,
    remarks,
)
from capsmith.merging.series import METADATA_PATH, forgotten_series
from capsmith.merging.shared_file import Names, Style
from capsmith.merging.unfinished import STATE_PATH
from capsmith.pipeline import overlaying
from capsmith.pipeline.understanding import Loaded
from capsmith.report import FileOutcome, Outcome, Report
from capsmith.tree import FileTree, Owner, digest
from capsmith.workspace.repository import Change, Repository


@dataclass(frozen=True, slots=True)
class Asked:
    """What the author asked for, besides provider.yaml."""

    style: Style = Style.MERGE
    force: bool = False
    restore: frozenset[str] = frozenset()
    mine: frozenset[str] = frozenset()
    """Files of capsmith's that the author takes over."""
    not_mine: frozenset[str] = frozenset()
    """Those of them that are given back."""
    diff: bool = False
    blueprints: Path | None = None
    """The folder of an overlay that provider.yaml does not name."""
    no_blueprints: bool = False
    """Whether to go on without one that was named on the command line before."""


@dataclass(frozen=True, slots=True)
class Plan:
    """All that there is to do, before anything is done."""

    report: Report
    change: Change
    """Of the files."""
    records: Change
    """Of the lock and of the bases of shared files."""
    names: Names
    is_possible: bool
    """Whether it may be carried out; conflicts are no hindrance, they are written."""
    overlay: str = ""
    """The folder of the repository in which the author's blueprints are, if any."""

    @property
    def conflicts(self) -> tuple[str, ...]:
        """The files that wait for the author when the plan is carried out."""
        files = self.report.outcomes
        return tuple(file.path for file in files if file.outcome is Outcome.CONFLICTED)

    @property
    def is_nothing(self) -> bool:
        """Whether all is as it should be."""
        return self.report.exit_code == 0 and not self.change and not self.records


def plan(repository: Repository, loaded: Loaded, lock: Lock | None, asked: Asked) -> Plan:
    """What has to be done to bring ``repository`` in line.

    Raises UnreadableInput, Refused or BlueprintError.
    """
    names = _names(lock)
    strange = _not_handed_over(lock, asked)
    if lock is not None:
        lock = lock.handed_over(asked.mine, asked.not_mine)
    missed = overlaying.missed(loaded, lock, without=asked.no_blueprints)
    if loaded.provider is None or has_errors(loaded.findings) or missed:
        return _impossible(loaded.findings + missed, names)
    tree, broken = overlaying.tree_of(loaded)
    if tree is None or has_errors(broken):
        return _impossible(loaded.findings + broken, names)
    disk = _on_disk(repository, tree, lock)
    wishes = Wishes(names, asked.style, asked.force, asked.restore)
    decisions = reconcile(tree, disk, lock, wishes)
    strange += _not_restored(decisions, asked.restore)
    stopped = refused(decisions)
    told = stopped or decisions  # if nothing is done, nothing else is told of files
    forgotten = forgotten_series(disk.files.get(METADATA_PATH), tree)
    found = ordered((*loaded.findings, *remarks(told, tree), *strange, *forgotten))
    report = Report(found, tuple(_outcome(each, tree, disk, asked) for each in told))
    records = _records(repository, tree, lock, _next_lock(tree, loaded, lock))
    possible = not stopped and not strange
    return Plan(report, _change(decisions), records, names, possible, loaded.blueprints)


def _impossible(findings: tuple[Finding, ...], names: Names) -> Plan:
    return Plan(Report(ordered(findings)), Change(), Change(), names, False)


def spec_digest(text: str) -> str:
    """The digest of a provider.yaml, whatever line ends git gave it."""
    return digest(text.replace("\r\n", "\n"))


def read_lock(repository: Repository) -> Lock | None:
    """The lock of a repository, None when nothing was generated yet.

    Raises UnreadableInput for anything else, Refused for one of a later capsmith.
    """
    text = repository.read(LOCK_PATH)
    if text is None:
        return None
    lock = Lock.load(text, str(repository.folder / LOCK_PATH))
    if lock.is_newer_than(__version__):
        raise Refused(
            "lock-newer",
            f"capsmith {lock.generator} generated this, and here is capsmith {__version__}",
            file=str(repository.folder / LOCK_PATH),
            hint=f"Install capsmith {lock.generator}: an older one would undo what it did.",
        )
    return lock


def refuse_unfinished(repository: Repository) -> None:
    """Raises Refused when an update waits for its conflicts to be resolved."""
    if repository.content(STATE_PATH) is not None:
        raise Refused(
            "update-unfinished",
            "an update is not finished: its conflicts wait for you",
            file=str(repository.folder),
            hint="Resolve them and run capsmith update --continue; --abort brings back what was.",
        )


def _names(lock: Lock | None) -> Names:
    former = lock.generator if lock is not None else __version__
    return Names("yours", f"generated before (capsmith {former})", f"capsmith {__version__}")


def _on_disk(repository: Repository, tree: FileTree, lock: Lock | None) -> OnDisk:
    locked = lock.files if lock is not None else {}
    owners = [(path, file.owner) for path, file in locked.items()]
    owners += [(str(file.path), file.owner) for file in tree]
    authors = {path for path, owner in owners if owner is Owner.SCAFFOLD}
    if lock is not None:
        authors |= lock.mine
    files = repository.contents({*tree.files, *locked}, authors)
    shared = [path for path, file in locked.items() if file.owner is Owner.MERGED]
    bases = repository.contents(f"{BASE_FOLDER}/{path}" for path in shared)
    return OnDisk(files, {path[len(BASE_FOLDER) + 1 :]: text for path, text in bases.items()})


def _outcome(decision: Decision, tree: FileTree, disk: OnDisk, asked: Asked) -> FileOutcome:
    outcome = FileOutcome(decision.path, decision.outcome)
    if not asked.diff:
        return outcome
    before = disk.files.get(decision.path)
    after = decision.content if decision.content is not None else before
    if decision.outcome is Outcome.REMOVED:
        after = None
    elif decision.path in tree and (
        decision.outcome is Outcome.REFUSED or decision.reason is Reason.BEHIND
    ):  # what would be there, if it were capsmith's
        after = tree[decision.path].text.encode()
    return replace(outcome, diff=difference(decision.path, before, after))


def _not_restored(decisions: tuple[Decision, ...], restore: frozenset[str]) -> tuple[Finding, ...]:
    created = {each.path for each in decisions if each.outcome is Outcome.CREATED}
    return tuple(not_restored(path) for path in sorted(restore - created))


def _not_handed_over(lock: Lock | None, asked: Asked) -> tuple[Finding, ...]:
    files = lock.files if lock is not None else {}
    takeable = {path for path, file in files.items() if file.owner is not Owner.SCAFFOLD}
    returnable = {path for path, file in files.items() if file.mine}
    found = [not_takeable(path) for path in sorted(asked.mine - takeable)]
    return (*found, *(not_returnable(path) for path in sorted(asked.not_mine - returnable)))


def _next_lock(tree: FileTree, loaded: Loaded, lock: Lock | None) -> Lock:
    contracts = loaded.provider.contracts if loaded.provider is not None else ()
    versions = tuple(contract.version for contract in contracts)
    over = overlaying.locked(loaded.overlay)
    return Lock.of(tree, __version__, versions, spec_digest(loaded.text), lock, over)


def _change(decisions: tuple[Decision, ...]) -> Change:
    change = Change()
    for decision in decisions:
        if decision.content is not None:
            change.write(decision.path, decision.content, decision.executable)
        elif decision.outcome is Outcome.REMOVED:
            change.remove(decision.path)
    return change


def _records(repository: Repository, tree: FileTree, lock: Lock | None, new_lock: Lock) -> Change:
    """The bases first and the lock last, each only if it is another one than before."""
    records = Change()
    shared = {path for path, file in new_lock.files.items() if file.owner is Owner.MERGED}
    for path in sorted(shared - new_lock.mine):
        _write_if_new(repository, records, f"{BASE_FOLDER}/{path}", tree[path].text)
    for path, file in (lock.files if lock is not None else {}).items():
        base = f"{BASE_FOLDER}/{path}"
        if file.owner is Owner.MERGED and path not in shared and repository.content(base):
            records.remove(base)
    _write_if_new(repository, records, LOCK_PATH, new_lock.dump())
    return records


def _write_if_new(repository: Repository, change: Change, path: str, text: str) -> None:
    there = repository.content(path)
    if there is None or there.replace(b"\r\n", b"\n") != text.encode():
        change.write(path, text)
