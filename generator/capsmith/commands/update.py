"""update: bring a repository in line after a change of its provider.yaml, or of capsmith."""

from __future__ import annotations

from pathlib import Path

from capsmith import __version__
from capsmith.commands import apply, up_to_date
from capsmith.commands.load import load
from capsmith.commands.options import UpdateOptions
from capsmith.commands.plan import Plan, make_plan
from capsmith.commands.preconditions import (
    complete_interrupted,
    refuse_dirty,
    refuse_interrupted,
    refuse_unfinished,
    require_lock,
)
from capsmith.findings import Finding, Location, ordered
from capsmith.merging.lock import LOCK_PATH, SPEC_NAME
from capsmith.report import Report
from capsmith.workspace.repository import Repository


def update(folder: Path, options: UpdateOptions) -> Report:
    """Bring a generated repository in line with its provider.yaml and with this capsmith.

    Raises what :func:`capsmith.commands.generate.generate` raises, and Refused when git knows of
    uncommitted changes in the folder, other than in provider.yaml, and there is something to do.
    """
    repository = Repository(folder)
    with repository.held():
        completed = complete_interrupted(repository)
        plan = _plan(repository, options)
        if plan.is_possible and not plan.is_nothing and not options.allow_dirty:
            refuse_dirty(folder, plan.overlay, plan.change.writes)
        apply.apply_plan(repository, plan)
        return plan.report.with_findings(completed)


def preview(folder: Path, options: UpdateOptions) -> Report:
    """Report what :func:`update` would do; write nothing.  Raises the same, except for git."""
    repository = Repository(folder)
    with repository.held(writes=False):
        return _preview(repository, options).report


def check(folder: Path, options: UpdateOptions) -> Report:
    """Report what :func:`update` would do; any change is an error."""
    repository = Repository(folder)
    with repository.held(writes=False):
        known = up_to_date.key(repository)
        plan = _preview(repository, options)
        if plan.is_nothing and not plan.report.findings:
            up_to_date.remember(repository, known)
    if plan.is_nothing or plan.report.exit_code != 0:
        return plan.report
    behind = Finding(
        "repository-behind",
        f"this differs from what capsmith {__version__} generates from provider.yaml",
        Location(str(folder / LOCK_PATH)),
        hint="Run capsmith update, and commit what it changes.",
    )
    return plan.report._replace(findings=ordered((*plan.report.findings, behind)))


def resume(folder: Path) -> Report:
    """Finish an update after its conflicts were resolved, or after an interruption."""
    repository = Repository(folder)
    with repository.held():
        return apply.conclude(repository)


def abort(folder: Path, *, force: bool = False) -> Report:
    """Restore the state before an unfinished update; see :func:`apply.abort`."""
    repository = Repository(folder)
    with repository.held():
        return apply.abort(repository, force=force)


def _preview(repository: Repository, options: UpdateOptions) -> Plan:
    refuse_interrupted(repository)
    return _plan(repository, options)


def _plan(repository: Repository, options: UpdateOptions) -> Plan:
    refuse_unfinished(repository)
    lock = require_lock(repository)
    loaded = load(repository.folder / SPEC_NAME, options.blueprints)
    return make_plan(repository, loaded, lock, options)
