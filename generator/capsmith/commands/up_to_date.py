"""Recognize a repository that has not changed since it was last found to be up to date.

The same provider.yaml and the same capsmith always result in the same lock.  When the full check
finds a repository up to date, it records this in the user's cache, and the next check only compares
the files with the lock.

The shortcut, which serves CI and hooks, must never call a repository up to date if the full check
would not.  In any doubtful case it returns None, and the full check runs.
"""

from __future__ import annotations

from pathlib import Path

from capsmith import __version__, resources
from capsmith.errors import CapsmithError
from capsmith.merging.decide import settle
from capsmith.merging.lock import BASE_FOLDER, LOCK_PATH, Lock, LockedFile
from capsmith.merging.unfinished import STATE_PATH
from capsmith.output.runtime import RECORD, is_vendored
from capsmith.report import FileOutcome, Outcome, Report, RuntimeOutcome
from capsmith.tree import SPEC_NAME, Owner, digest, digest_texts, is_text_of
from capsmith.workspace.cache import FolderCache
from capsmith.workspace.reading import locate_overlay, read_overlay
from capsmith.workspace.repository import Repository


def compute_key(repository: Repository) -> str | None:
    """Return the key under which the cache records a repository, or None if there is none.

    The key changes with capsmith, provider.yaml and the lock.  It is None if provider.yaml or the
    lock is missing, or if capsmith has no fingerprint.
    """
    own = resources.compute_fingerprint()
    spec, lock = repository.read_bytes(SPEC_NAME), repository.read_bytes(LOCK_PATH)
    if own is None or spec is None or lock is None:
        return None
    return f"up-to-date-{__version__}-{own}-{digest(spec)}-{digest(lock)}"


def record_up_to_date(repository: Repository, known: str | None) -> None:
    """Record in the user's cache that ``repository`` is up to date and has no findings.

    ``known`` is the repository's cache key, computed before the check.  Nothing is recorded if the
    key has changed since then.
    """
    cache = FolderCache.of_user()
    # If the key has changed during the check, it belongs to a different state from the one that was
    # checked.
    if cache is not None and known is not None and known == compute_key(repository):
        cache.put(known, b"")


def check_from_cache(folder: Path, blueprints: Path | None = None) -> Report | None:
    """Return the report for a repository that is up to date according to the cache, else None.

    ``blueprints`` is the path to an overlay that provider.yaml does not name.
    """
    repository, cache = Repository(folder), FolderCache.of_user()
    if cache is None:
        return None
    try:
        with repository.hold(writes=False):
            known = compute_key(repository)
            if known is None or cache.get(known) is None or repository.is_interrupted:
                return None
            # An unfinished update is left to the full check, which explains it.
            if repository.read_bytes(STATE_PATH) is not None:
                return None
            lock = Lock.load(repository.read_text(LOCK_PATH) or "", LOCK_PATH)
            lock = lock.with_record(repository.read_text(RECORD), RECORD)
            if not _has_overlay(lock, folder, blueprints):
                return None
            return _compare(repository, lock)
    except CapsmithError:
        return None


def _has_overlay(lock: Lock, folder: Path, given: Path | None) -> bool:
    """Return whether the overlay matches the lock; False if there is no overlay to compare."""
    locked = lock.blueprints
    if locked is None or (locked.folder and given is not None):
        return locked is None and given is None
    source = locate_overlay(folder, locked.folder) if locked.folder else given
    if source is None:
        return False
    texts, unread = read_overlay(source)
    return not unread and digest_texts(texts) == locked.digest


def _compare(repository: Repository, lock: Lock) -> Report | None:
    contents = repository.read_existing(lock.files, lock.author_paths)
    outcomes = []
    for path, file in sorted(lock.files.items()):
        # The lock describes the content that would be generated, so only decisions that write
        # nothing apply.
        generated = file.offered or file.digest
        decision = settle(path, file.owner, generated, file, contents.get(path))
        # A missing merge base changes no file, but the next merge needs it.
        if decision is None or (
            file.owner is Owner.MERGED and not _has_base(repository, path, file)
        ):
            return None
        if not is_vendored(path):
            outcomes.append(FileOutcome(path, decision.outcome))
    return Report(outcomes=tuple(outcomes), runtime=_runtime(lock))


def _runtime(lock: Lock) -> RuntimeOutcome | None:
    runtime = lock.runtime
    if runtime is None:
        return None
    outcome = Outcome.KEPT if runtime.mine else Outcome.UNCHANGED
    return RuntimeOutcome(outcome, runtime.mode, runtime.version, runtime.version)


def _has_base(repository: Repository, path: str, file: LockedFile) -> bool:
    base = repository.read_bytes(f"{BASE_FOLDER}/{path}")
    return base is not None and is_text_of(base, file.digest)
