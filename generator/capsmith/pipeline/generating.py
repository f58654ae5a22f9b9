"""generate, new: a repository brought in line with its provider.yaml."""

from __future__ import annotations

from pathlib import Path

from capsmith import __version__
from capsmith.errors import Refused
from capsmith.findings import has_errors, ordered
from capsmith.merging.lock import BASE_FOLDER, LOCK_PATH, Lock
from capsmith.merging.reconcile import Decision, reconcile
from capsmith.merging.remarks import remarks
from capsmith.pipeline.building import build, conformance
from capsmith.pipeline.understanding import SPEC_NAME, Loaded, load, understand
from capsmith.report import FileOutcome, Outcome, Report
from capsmith.tree import FileTree, Owner, digest
from capsmith.workspace.repository import Change, Repository

_NOT_FOREIGN = frozenset({".git", ".capsmith"})


def generate(path: Path, folder: Path, *, beside_others: bool = False) -> Report:
    """Bring the repository in ``folder`` in line with the provider.yaml at ``path``.

    Everything is rendered before one byte is written; nothing is written when there is an error.
    ``beside_others`` allows a first run in a folder that holds other files; none is replaced.
    Raises UnreadableInput, Refused, DiskError or BlueprintError.
    """
    loaded = load(path)
    repository = Repository(folder)
    with repository.held():
        own = {path.name} if path.parent.resolve() == folder.resolve() else set()
        welcome = set(repository.names()) if beside_others else own
        in_place = path.resolve() == (folder / SPEC_NAME).resolve()
        return _bring_in_line(repository, loaded, welcome, add_spec=not in_place)


def create(text: str, folder: Path, *, beside_others: bool = False) -> Report:
    """Generate a first repository from the text of a provider.yaml, which is written too.

    ``beside_others`` is as in :func:`generate`.  Raises Refused when there is a provider.yaml
    already, and what :func:`generate` raises.
    """
    repository = Repository(folder)
    with repository.held():
        names = repository.names()
        if SPEC_NAME in names:
            raise Refused(
                "provider-exists",
                "there is a provider already",
                file=str(folder / SPEC_NAME),
                hint="Edit it and run capsmith generate, or name another folder.",
            )
        loaded = understand(text, str(folder / SPEC_NAME))
        welcome = set(names) if beside_others else set()
        return _bring_in_line(repository, loaded, welcome, add_spec=True)


def _bring_in_line(
    repository: Repository, loaded: Loaded, welcome: set[str], *, add_spec: bool
) -> Report:
    """Generate; ``welcome`` are the names in a folder without a lock that may be there."""
    if loaded.provider is None or has_errors(loaded.findings):
        return Report(findings=loaded.findings)
    repository.complete_pending()
    lock = _lock(repository)
    if lock is None:
        _refuse_foreign(repository, welcome)
    tree = build(loaded.provider)
    broken = conformance(tree, loaded.provider)
    if has_errors(broken):
        return Report(findings=ordered(loaded.findings + broken))
    paths = {*tree.files, *(lock.files if lock is not None else ())}
    decisions = reconcile(tree, repository.read_all(paths, _authors(tree, lock)), lock)
    found = remarks(decisions, tree, lock.files if lock is not None else {})
    if has_errors(found):  # nothing is done, so nothing else is told of files
        decisions = tuple(d for d in decisions if d.outcome is Outcome.REFUSED)
    outcomes = tuple(FileOutcome(d.path, d.outcome) for d in decisions)
    report = Report(loaded.findings + found, outcomes)
    if report.exit_code == 0:
        contracts = tuple(contract.version for contract in loaded.provider.contracts)
        new_lock = Lock.of(tree, __version__, contracts, digest(loaded.text))
        change = _change(repository, decisions, tree, new_lock)
        if add_spec:
            _add_spec(repository, change, loaded.text, lock)
        repository.apply(change)
    return report


def _lock(repository: Repository) -> Lock | None:
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


def _authors(tree: FileTree, lock: Lock | None) -> set[str]:
    locked = lock.files if lock is not None else {}
    owners = [(path, file.owner) for path, file in locked.items()]
    owners += [(str(file.path), file.owner) for file in tree]
    return {path for path, owner in owners if owner is Owner.SCAFFOLD}


def _refuse_foreign(repository: Repository, welcome: set[str]) -> None:
    foreign = [name for name in repository.names() if name not in _NOT_FOREIGN | welcome]
    if foreign:
        named = foreign if len(foreign) <= 8 else [*foreign[:7], f"{len(foreign) - 7} more"]
        raise Refused(
            "output-not-empty",
            f"the folder holds files that capsmith did not write: {', '.join(named)}",
            file=str(repository.folder),
            hint="Generate into a new folder, or say --beside-others: nothing is replaced then.",
        )


def _change(
    repository: Repository, decisions: tuple[Decision, ...], tree: FileTree, lock: Lock
) -> Change:
    change = Change()
    for decision in decisions:
        if decision.file is not None:
            change.write(decision.path, decision.file.text, decision.file.executable)
        elif decision.outcome is Outcome.REMOVED:
            change.remove(decision.path)
    for file in tree:
        if file.owner is Owner.MERGED:
            _write_if_new(repository, change, f"{BASE_FOLDER}/{file.path}", file.text)
    _write_if_new(repository, change, LOCK_PATH, lock.dump())
    return change


def _write_if_new(repository: Repository, change: Change, path: str, text: str) -> None:
    if repository.read(path) != text:
        change.write(path, text)


def _add_spec(repository: Repository, change: Change, text: str, lock: Lock | None) -> None:
    """Keep the provider.yaml beside what was generated from it."""
    there = repository.read(SPEC_NAME)
    if there not in (None, text) and (lock is None or digest(there or "") != lock.spec_digest):
        raise Refused(
            "output-other-spec",
            "the folder has another provider.yaml, which differs from the one named",
            file=str(repository.folder / SPEC_NAME),
            hint="Run capsmith generate on the provider.yaml in the folder.",
        )
    if there != text:
        change.write(SPEC_NAME, text)
