"""Plan a `generate` or `update`: compare a repository with its provider.yaml.

All decisions are made here, based on the files that were read; :mod:`capsmith.commands.apply` only
executes the plan.  A preview makes the same plan as an update and therefore shows exactly what the
update would do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from capsmith import __version__
from capsmith.commands import build
from capsmith.commands.build import load_runtime_library
from capsmith.commands.load import Loaded
from capsmith.commands.overlay import find_missing_overlay, make_lock_entry
from capsmith.findings import Finding, has_errors
from capsmith.merging.decide import (
    Decision,
    MergeOptions,
    OnDisk,
    Reason,
    decide,
    record_kept_scaffolds,
)
from capsmith.merging.decision_findings import (
    diff_contents,
    report_decisions,
    report_not_restored,
    report_not_returnable,
    report_not_takeable,
    select_refused,
)
from capsmith.merging.lock import BASE_FOLDER, LOCK_PATH, Lock, LockedFile, LockedRuntime
from capsmith.merging.release_changes import (
    METADATA_PATH,
    find_changed_components,
    find_dropped_series,
)
from capsmith.merging.scaffold_imports import find_missing_modules
from capsmith.merging.shared_file import ConflictLabels, ConflictStyle
from capsmith.output.runtime import FOLDER, Mode, is_vendored, remove_vendored, select_runtime
from capsmith.provider.model import Provider
from capsmith.report import FileOutcome, Outcome, Report, RuntimeOutcome
from capsmith.tree import SPEC_NAME, FileTree, Owner, digest
from capsmith.workspace.repository import Change, Repository


class UpdateOptions(NamedTuple):
    """Command-line options of `capsmith update`, which supplement provider.yaml."""

    style: ConflictStyle = ConflictStyle.MERGE
    force: bool = False
    """Whether to replace generated files that were edited."""
    restore: frozenset[str] = frozenset()
    """Paths to write again: deleted files, and scaffolds for which capsmith has new content."""
    mine: frozenset[str] = frozenset()
    """Paths of generated files that the author takes over from capsmith."""
    not_mine: frozenset[str] = frozenset()
    """Paths of files that the author took over and now hands back to capsmith."""
    diff: bool = False
    runtime: Mode | None = None
    """New value for `runtime` in provider.yaml; None to keep the current value."""
    blueprints: Path | None = None
    """Path to an overlay that provider.yaml does not name."""
    no_blueprints: bool = False
    """Whether to continue without the overlay given on an earlier command line."""
    allow_dirty: bool = False
    """Whether to continue even if git reports uncommitted changes."""


_NEW_TEXT = {Reason.BEHIND, Reason.SCAFFOLD_BEHIND, Reason.SCAFFOLD_HELD}
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LIBRARY_SINCE = "0.2"
"""First release with the runtime library; before, the runtime was generated into each
repository."""


class Plan(NamedTuple):
    """All changes that a run will make, decided before it makes the first one."""

    report: Report
    change: Change
    """Changes to generated files."""
    records: Change
    """Changes to the lock, and to the bases of shared files."""
    names: ConflictLabels
    is_possible: bool
    """Whether the plan may be applied. Conflicts do not prevent this, because they are written into
    the files.
    """
    overlay: str = ""
    """Path to the overlay in the repository; empty if there is none."""

    @property
    def conflicts(self) -> tuple[str, ...]:
        """Return the files with conflicts that the author must resolve after the update."""
        files = self.report.outcomes
        return tuple(file.path for file in files if file.outcome is Outcome.CONFLICTED)

    @property
    def is_nothing(self) -> bool:
        """Return whether the run would succeed without changing anything."""
        return self.report.exit_code == 0 and not self.change and not self.records


def make_plan(
    repository: Repository, loaded: Loaded, lock: Lock | None, options: UpdateOptions
) -> Plan:
    """Plan the changes that make ``repository`` match provider.yaml, without writing anything.

    ``lock`` is None on the first run.  If the plan cannot be applied, it has no changes, and its
    report contains the errors.  Raises UnreadableInput for files that cannot be read, Refused if
    the author's files could be lost, and BlueprintError for a broken blueprint.
    """
    names = _names(lock)
    missing = find_missing_overlay(
        loaded.blueprints, loaded.overlay, lock, without=options.no_blueprints
    )
    if loaded.provider is None or has_errors(loaded.findings) or missing:
        return _impossible(loaded.findings + missing, names)
    legacy = _keeps_legacy_imports(lock)
    tree, broken = build.build_checked(loaded.provider, loaded.overlay, legacy)
    if tree is None or has_errors(broken):
        return _impossible(loaded.findings + broken, names)
    unknown = _not_handed_over(lock, tree, options)
    if unknown:
        return _impossible(loaded.findings + unknown, names)
    return _plan_changes(repository, loaded, loaded.provider, tree, lock, options)


def _plan_changes(
    repository: Repository,
    loaded: Loaded,
    provider: Provider,
    tree: FileTree,
    lock: Lock | None,
    options: UpdateOptions,
) -> Plan:
    """Return the plan for a tree without errors: a decision for each file, and the next lock."""
    names = _names(lock)
    if lock is not None:
        lock = lock.hand_over(options.mine, options.not_mine)
        # A fork is a copy of the whole library, and single files of a newer release would not fit.
        tree = remove_vendored(tree) if lock.has_fork else tree
    renames = _find_renamed(repository, tree, lock)
    lock = lock.rename_files(renames) if lock is not None else None
    disk = _on_disk(repository, tree, lock)
    decisions = _decisions(tree, disk, lock, options)
    unknown = _not_restored(decisions, options.restore)
    if unknown:
        return _impossible(loaded.findings + unknown, names)
    # One refused file stops the run: half of the repository would follow the old provider.yaml.
    refusals = select_refused(decisions)
    reported = refusals or decisions  # with a refusal nothing happens to the other files
    found = (
        *loaded.findings,
        *report_decisions(reported, tree),
        *find_missing_modules(reported, tree, disk.files),
        *find_dropped_series(disk.files.get(METADATA_PATH), tree),
        *find_changed_components(provider, tree, lock),
    )
    kept = record_kept_scaffolds(decisions, tree, disk, lock)
    next_lock = _next_lock(tree, loaded, provider, lock, kept)
    outcomes = tuple(_outcome(each, tree, disk, options) for each in reported if _is_named(each))
    report = Report(outcomes=outcomes, runtime=_runtime_outcome(reported, next_lock, lock))
    report = report.with_findings(found)
    records = _records(repository, tree, lock, next_lock)
    change = _change(decisions, renames)
    if not refusals and not change:
        report = _with_records(repository, report, records, options)
    return Plan(report, change, records, names, not refusals, loaded.blueprints)


def add_spec_change(
    repository: Repository, loaded: Loaded, plan: Plan, options: UpdateOptions
) -> Plan:
    """Return ``plan`` with the change to provider.yaml if there is one and the plan is possible.

    Both are applied in one step, so that provider.yaml always describes the generated files.
    """
    present = repository.read_bytes(SPEC_NAME) or b""
    mark = _BYTE_ORDER_MARK if present.startswith(_BYTE_ORDER_MARK) else b""
    # An editor's byte order mark is not part of the text and is kept.
    content = mark + loaded.text.encode()
    if not plan.is_possible or content == present:
        return plan
    plan.change.write(SPEC_NAME, content, executable=None)
    diff = diff_contents(SPEC_NAME, present, content) if options.diff else ""
    outcomes = [*plan.report.outcomes, FileOutcome(SPEC_NAME, Outcome.UPDATED, diff)]
    report = replace(plan.report, outcomes=tuple(sorted(outcomes, key=lambda file: file.path)))
    return plan._replace(report=report)


def _decisions(
    tree: FileTree, disk: OnDisk, lock: Lock | None, options: UpdateOptions
) -> tuple[Decision, ...]:
    is_new_generator = lock is not None and lock.generator != __version__
    merge_options = MergeOptions(
        _names(lock), options.style, options.force, options.restore, is_new_generator
    )
    return decide(tree, disk, lock, merge_options)


def _impossible(findings: tuple[Finding, ...], names: ConflictLabels) -> Plan:
    return Plan(Report().with_findings(findings), Change(), Change(), names, False)


def digest_spec(text: str) -> str:
    """Return a digest of a provider.yaml. Line endings, which git may convert, are ignored."""
    return digest(text.replace("\r\n", "\n"))


def _names(lock: Lock | None) -> ConflictLabels:
    former = lock.generator if lock is not None else __version__
    return ConflictLabels(
        "yours", f"generated before (capsmith {former})", f"capsmith {__version__}"
    )


def _on_disk(repository: Repository, tree: FileTree, lock: Lock | None) -> OnDisk:
    locked = lock.files if lock is not None else {}
    scaffolds = {str(file.path) for file in tree if file.owner is Owner.SCAFFOLD}
    # The author may make these files unreadable, because an update only needs to know that they
    # exist.
    authors = scaffolds | (lock.author_paths if lock is not None else frozenset())
    files = repository.read_existing({*tree.files, *locked}, authors)
    shared = [path for path, file in locked.items() if file.owner is Owner.MERGED]
    bases = repository.read_existing(f"{BASE_FOLDER}/{path}" for path in shared)
    return OnDisk(files, {path[len(BASE_FOLDER) + 1 :]: text for path, text in bases.items()})


def _find_renamed(repository: Repository, tree: FileTree, lock: Lock | None) -> dict[str, str]:
    """Return the new paths, by former path, of files whose name changes in case only.

    Where case is ignored, the former file would be removed after the new one was written, although
    they are one.
    """
    paths = {path.lower(): path for path in tree.files}
    pairs = (
        (path, paths.get(path.lower(), path)) for path in (lock.files if lock is not None else ())
    )
    return {path: new for path, new in pairs if new != path and repository.is_same_entry(path, new)}


def _outcome(
    decision: Decision, tree: FileTree, disk: OnDisk, options: UpdateOptions
) -> FileOutcome:
    outcome = FileOutcome(decision.path, decision.outcome)
    if not options.diff:
        return outcome
    before = disk.files.get(decision.path)
    after = decision.content if decision.content is not None else before
    if decision.outcome is Outcome.REMOVED:
        after = None
    elif decision.path in tree and (
        decision.outcome is Outcome.REFUSED or decision.reason in _NEW_TEXT
    ):  # show the generated text
        after = tree[decision.path].text.encode()
    return outcome._replace(diff=diff_contents(decision.path, before, after))


def _with_records(
    repository: Repository, report: Report, records: Change, options: UpdateOptions
) -> Report:
    """Add the outcomes for the lock and for bases to a report that has no other changes.

    With other changes they would be noise.
    """
    outcomes = list(report.outcomes)
    for path, write in records.writes.items():
        before = repository.read_bytes(path)
        diff = diff_contents(path, before, write.content) if options.diff else ""
        outcome = Outcome.UPDATED if before is not None else Outcome.CREATED
        outcomes.append(FileOutcome(path, outcome, diff))
    outcomes += [FileOutcome(path, Outcome.REMOVED) for path in records.removals]
    return replace(report, outcomes=tuple(sorted(outcomes, key=lambda file: file.path)))


def _not_restored(decisions: tuple[Decision, ...], restore: frozenset[str]) -> tuple[Finding, ...]:
    concerned = {Outcome.CREATED, Outcome.UPDATED, Outcome.REFUSED}
    known = {each.path for each in decisions if each.outcome in concerned}
    return tuple(report_not_restored(path) for path in sorted(restore - known))


def _takeable(lock: Lock | None, tree: FileTree) -> frozenset[str]:
    if lock is None:
        return frozenset()
    stay_scaffolds = {
        path for path in lock.scaffolds if path not in tree or tree[path].owner is Owner.SCAFFOLD
    }
    files = {path for path in lock.files if not is_vendored(path)} - stay_scaffolds
    vendored = lock.runtime is not None and lock.runtime.digest
    return frozenset(files | {FOLDER}) if vendored else frozenset(files)


def _not_handed_over(
    lock: Lock | None, tree: FileTree, options: UpdateOptions
) -> tuple[Finding, ...]:
    takeable = _takeable(lock, tree)
    returnable = lock.mine if lock is not None else frozenset()
    if lock is not None and lock.has_fork:
        returnable |= {FOLDER}
    found = [report_not_takeable(path) for path in sorted(options.mine - takeable)]
    return (
        *found,
        *(report_not_returnable(path) for path in sorted(options.not_mine - returnable)),
    )


def _keeps_legacy_imports(lock: Lock | None) -> bool:
    """Return whether the author's code may have been written for capsmith 0.1."""
    return lock is not None and (lock.legacy_imports or lock.is_older_than(_LIBRARY_SINCE))


def _is_named(decision: Decision) -> bool:
    """Return whether a file is reported individually: vendored files are only if refused."""
    return not is_vendored(decision.path) or decision.outcome is Outcome.REFUSED


def _runtime_outcome(
    decisions: tuple[Decision, ...], next_lock: Lock, lock: Lock | None
) -> RuntimeOutcome | None:
    runtime, former = next_lock.runtime, lock.runtime if lock is not None else None
    vendored = {each.outcome for each in decisions if is_vendored(each.path)}
    # A refused file of the runtime is reported individually, and nothing is written.
    if runtime is None or Outcome.REFUSED in vendored:
        return None
    if runtime.mine:
        outcome = Outcome.KEPT
    elif former is None:
        outcome = Outcome.CREATED
    elif former != runtime or vendored - {Outcome.UNCHANGED}:
        outcome = Outcome.UPDATED
    else:
        outcome = Outcome.UNCHANGED
    return RuntimeOutcome(outcome, runtime.mode, runtime.version, former.version if former else "")


def _next_lock(
    tree: FileTree,
    loaded: Loaded,
    provider: Provider,
    lock: Lock | None,
    kept: Mapping[str, LockedFile],
) -> Lock:
    runtime = select_runtime(provider, load_runtime_library())
    return Lock.of(
        tree,
        __version__,
        tuple(contract.version for contract in provider.contracts),
        digest_spec(loaded.text),
        lock,
        make_lock_entry(loaded.overlay),
        LockedRuntime.of(runtime, tree),
        _keeps_legacy_imports(lock),
        kept,
    )


def _change(decisions: tuple[Decision, ...], renames: Mapping[str, str]) -> Change:
    change = Change()
    for former, path in renames.items():
        change.rename(former, path)
    for decision in decisions:
        if decision.content is not None:
            change.write(decision.path, decision.content, decision.executable)
        elif decision.outcome is Outcome.REMOVED:
            change.remove(decision.path)
    return change


def _records(repository: Repository, tree: FileTree, lock: Lock | None, new_lock: Lock) -> Change:
    """Return the changes to bases and lock, except where the content is already right.

    A base is the content that capsmith generated last for a shared file.  It is replaced together
    with the lock that has its digest: a merge from any other base could lose the author's lines.
    """
    records = Change()
    shared = {path for path, file in new_lock.files.items() if file.owner is Owner.MERGED}
    for path in sorted(shared - new_lock.mine):
        _write_if_new(repository, records, f"{BASE_FOLDER}/{path}", tree[path].text)
    for path, file in (lock.files if lock is not None else {}).items():
        base = f"{BASE_FOLDER}/{path}"
        if file.owner is Owner.MERGED and path not in shared and repository.read_bytes(base):
            records.remove(base)
    _write_if_new(repository, records, LOCK_PATH, new_lock.dump())
    return records


def _write_if_new(repository: Repository, change: Change, path: str, text: str) -> None:
    present = repository.read_bytes(path)
    # Only differing content is written: otherwise every run would touch the lock, and no run would
    # be a no-op.
    if present is None or present.replace(b"\r\n", b"\n") != text.encode():
        change.write(path, text)
