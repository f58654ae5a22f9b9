"""update: a generated repository after a change of its provider.yaml, or of capsmith."""

from __future__ import annotations

from pathlib import Path

from capsmith import __version__
from capsmith.errors import Refused, UnreadableInput
from capsmith.findings import Finding, Location, ordered
from capsmith.merging.lock import LOCK_PATH, SPEC_NAME, Lock
from capsmith.pipeline import engine, finishing, memory
from capsmith.pipeline.engine import Asked, Plan
from capsmith.pipeline.understanding import load
from capsmith.report import Report
from capsmith.workspace.git import uncommitted
from capsmith.workspace.repository import Repository

_MOST_NAMED = 8


def update(folder: Path, asked: Asked, *, allow_dirty: bool = False) -> Report:
    """Bring a generated repository in line with its provider.yaml and with this capsmith.

    Raises what :func:`capsmith.pipeline.generate` raises, and Refused when git knows of
    uncommitted changes in the folder, other than in provider.yaml, and there is something to do.
    """
    repository = Repository(folder)
    with repository.held():
        repository.complete_pending()
        plan = _plan(repository, asked)
        if plan.is_possible and not plan.is_nothing and not allow_dirty:
            refuse_dirty(folder, plan.overlay)
        finishing.carry_out(repository, plan)
        return plan.report


def preview(folder: Path, asked: Asked) -> Report:
    """What :func:`update` would do; nothing is written.  Raises as it does, but for git."""
    repository = Repository(folder)
    with repository.held():
        return _previewed(repository, asked).report


def check(folder: Path, asked: Asked) -> Report:
    """Whether :func:`update` has nothing to do; if it has, that is an error in the report."""
    repository = Repository(folder)
    with repository.held():
        known = memory.key(repository)
        plan = _previewed(repository, asked)
        if plan.is_nothing and plan.report == Report(outcomes=plan.report.outcomes):
            memory.remember(repository, known)
    if plan.is_nothing or plan.report.exit_code != 0:
        return plan.report
    behind = Finding(
        "repository-behind",
        f"this is not what provider.yaml and capsmith {__version__} give",
        Location(str(folder / LOCK_PATH)),
        hint="Run capsmith update, and commit what it changes.",
    )
    return Report(ordered((*plan.report.findings, behind)), plan.report.outcomes)


def resume(folder: Path) -> Report:
    """Conclude an update after its conflicts were resolved, or after an interruption."""
    repository = Repository(folder)
    with repository.held():
        return finishing.finish(repository)


def abort(folder: Path, *, force: bool = False) -> Report:
    """Bring back what was before an unfinished update; see :func:`finishing.abort`."""
    repository = Repository(folder)
    with repository.held():
        return finishing.abort(repository, force=force)


def _previewed(repository: Repository, asked: Asked) -> Plan:
    refuse_interrupted(repository)
    return _plan(repository, asked)


def refuse_interrupted(repository: Repository) -> None:
    """Raises Refused when a run is not complete: then nothing can be told of what is there."""
    if repository.is_interrupted:
        raise Refused(
            "update-interrupted",
            "a run was interrupted before it was complete",
            file=str(repository.folder),
            hint="Run capsmith update --continue to complete it, or --abort to undo it.",
        )


def _plan(repository: Repository, asked: Asked) -> Plan:
    engine.refuse_unfinished(repository)
    lock = lock_of(repository)
    loaded = load(repository.folder / SPEC_NAME, asked.blueprints)
    return engine.plan(repository, loaded, lock, asked)


def lock_of(repository: Repository) -> Lock:
    """The lock of a generated repository.

    Raises UnreadableInput where there is none, and what :func:`engine.read_lock` raises.
    """
    lock = engine.read_lock(repository)
    if lock is None:
        raise UnreadableInput(
            "nothing-generated",
            "capsmith has not generated anything here",
            file=str(repository.folder),
            hint="Name the folder of a provider, or begin one: capsmith generate.",
        )
    return lock


def refuse_dirty(folder: Path, overlay: str = "") -> None:
    """Raises Refused when git knows of uncommitted changes in ``folder``.

    The description may be changed: provider.yaml, and the folder ``overlay`` if it names one.
    """
    dirty = [path for path in uncommitted(folder) if path != SPEC_NAME]
    if overlay:
        dirty = [path for path in dirty if not f"{path}/".startswith(f"{overlay}/")]
    if not dirty:
        return
    named = dirty if len(dirty) <= _MOST_NAMED else dirty[: _MOST_NAMED - 1]
    rest = f" and {len(dirty) - len(named)} more" if len(dirty) > len(named) else ""
    raise Refused(
        "update-dirty",
        f"there are uncommitted changes: {', '.join(named)}{rest}",
        file=str(folder),
        hint="Commit them first, so that git can show what the update changed, "
        "or run this with --allow-dirty.",
    )
