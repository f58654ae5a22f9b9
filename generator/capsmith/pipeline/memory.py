"""Whether a repository is as it was when it was last found to be up to date.

What a description gives is the same as long as capsmith and the description are.  So once a lock
has been found to be what they give, that is kept in the user's cache, and looking again takes no
more than comparing the files with the lock.  Anything unusual is left to the whole way.
"""

from __future__ import annotations

from pathlib import Path

from capsmith import __version__, resources
from capsmith.errors import CapsmithError
from capsmith.merging.lock import BASE_FOLDER, LOCK_PATH, SPEC_NAME, Lock, LockedFile
from capsmith.merging.pristine import is_text_of
from capsmith.merging.unfinished import STATE_PATH
from capsmith.report import FileOutcome, Outcome, Report
from capsmith.tree import Owner, digest, digest_of_texts
from capsmith.workspace.cache import FolderCache
from capsmith.workspace.overlay import own_overlay, read_overlay
from capsmith.workspace.repository import Repository


def key(repository: Repository) -> str | None:
    """All that decides what the lock has to be; None when that cannot be told."""
    own = resources.fingerprint()
    spec, lock = repository.content(SPEC_NAME), repository.content(LOCK_PATH)
    if own is None or spec is None or lock is None:
        return None
    return f"up-to-date-{__version__}-{own}-{digest(spec)}-{digest(lock)}"


def remember(repository: Repository, known: str | None) -> None:
    """Keep that ``repository`` is up to date and there is nothing to say about it.

    ``known`` is the key that it had before that was found out.
    """
    cache = FolderCache.of_user()
    if cache is not None and known is not None and known == key(repository):
        cache.put(known, b"")


def still_up_to_date(folder: Path, blueprints: Path | None = None) -> Report | None:
    """The report on a repository that is up to date; None when that is not known to be so.

    ``blueprints`` is the folder of an overlay that provider.yaml does not name.
    """
    repository, cache = Repository(folder), FolderCache.of_user()
    if cache is None:
        return None
    try:
        with repository.held():
            known = key(repository)
            if known is None or cache.get(known) is None or repository.is_interrupted:
                return None
            if repository.content(STATE_PATH) is not None:
                return None
            lock = Lock.load(repository.read(LOCK_PATH) or "", LOCK_PATH)
            if not _has_overlay(lock, folder, blueprints):
                return None
            return _compared(repository, lock)
    except CapsmithError:
        return None


def _has_overlay(lock: Lock, folder: Path, given: Path | None) -> bool:
    """Whether the overlay is the one of the lock; not to be told when there is none to look at."""
    over = lock.blueprints
    if over is None or (over.folder and given is not None):
        return over is None and given is None
    where = own_overlay(folder, over.folder) if over.folder else given
    if where is None:
        return False
    texts, unread = read_overlay(where)
    return not unread and digest_of_texts(texts) == over.digest


def _compared(repository: Repository, lock: Lock) -> Report | None:
    theirs = {path for path, file in lock.files.items() if file.owner is Owner.SCAFFOLD}
    there = repository.contents(lock.files, theirs | lock.mine)
    outcomes = []
    for path, file in sorted(lock.files.items()):
        content = there.get(path)
        same = content is not None and is_text_of(content, file.digest)
        if not same and file.owner is Owner.GENERATED and not file.mine:
            return None
        if file.owner is Owner.MERGED and not _has_base(repository, path, file):
            return None
        kept = file.mine or not same
        outcomes.append(FileOutcome(path, Outcome.KEPT if kept else Outcome.UNCHANGED))
    return Report(outcomes=tuple(outcomes))


def _has_base(repository: Repository, path: str, file: LockedFile) -> bool:
    base = repository.content(f"{BASE_FOLDER}/{path}")
    return base is not None and is_text_of(base, file.digest)
