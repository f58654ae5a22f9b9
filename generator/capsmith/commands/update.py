"""The command `update`: apply changes in provider.yaml or in capsmith to a repository."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from capsmith import __version__
from capsmith.commands import apply, up_to_date
from capsmith.commands.load import Loaded, load, load_text
from capsmith.commands.plan import Plan, UpdateOptions, add_spec_change, make_plan
from capsmith.commands.preconditions import (
    complete_interrupted,
    refuse_dirty,
    refuse_interrupted,
    refuse_sparse,
    refuse_unfinished,
    require_lock,
)
from capsmith.findings import Finding, Location, Severity
from capsmith.merging.lock import LOCK_PATH
from capsmith.output.runtime import DISTRIBUTION, FOLDER, Mode
from capsmith.report import Report
from capsmith.tree import SPEC_NAME
from capsmith.workspace.repository import Repository
from capsmith.yamldoc.editing import set_keys

_PYTHON_LOCK = "requirements.lock"


def update(folder: Path, options: UpdateOptions) -> Report:
    """Update a generated repository to match its provider.yaml and this capsmith.

    Raises the same errors as :func:`capsmith.commands.generate.generate`.  Also raises Refused if
    there is something to change and git reports uncommitted changes outside provider.yaml, unless
    ``options.allow_dirty`` is set.
    """
    repository = Repository(folder)
    with repository.hold():
        completed = complete_interrupted(repository)
        plan = _plan(repository, options)
        # Checked after planning, because a run that would change nothing needs no clean work tree.
        if plan.is_possible and not plan.is_nothing and not options.allow_dirty:
            refuse_dirty(folder, plan.overlay, plan.change.writes)
            refuse_sparse(folder, plan.records.writes)
        apply.apply_plan(repository, plan)
        return plan.report.with_findings(completed)


def preview(folder: Path, options: UpdateOptions) -> Report:
    """Report what :func:`update` would do, without writing anything.

    Uncommitted changes are ignored.
    """
    repository = Repository(folder)
    with repository.hold(writes=False):
        return _preview(repository, options).report


def check(folder: Path, options: UpdateOptions) -> Report:
    """Report what :func:`update` would do, without writing to the repository.

    Any change that it would make is reported as an error.
    """
    repository = Repository(folder)
    with repository.hold(writes=False):
        # Computed before the check, which takes seconds: a file edited in the meantime leads to
        # another key, and nothing is recorded.
        known = up_to_date.compute_key(repository)
        plan = _preview(repository, options)
        if plan.is_nothing and not plan.report.findings:
            up_to_date.record_up_to_date(repository, known)
    # A specific error says more than the drift that results from it.
    if plan.is_nothing or plan.report.exit_code != 0:
        return plan.report
    behind = Finding(
        "repository-behind",
        f"this differs from what capsmith {__version__} generates from provider.yaml",
        Location(str(folder / LOCK_PATH)),
        hint="Run capsmith update, and commit what it changes.",
    )
    return plan.report.with_findings((behind,))


def resume(folder: Path, *, force: bool = False) -> Report:
    """Finish an unfinished or interrupted update, as :func:`apply.conclude` does."""
    repository = Repository(folder)
    with repository.hold():
        return apply.conclude(repository, force=force)


def abort(folder: Path, *, force: bool = False) -> Report:
    """Restore the state before an unfinished update, as :func:`apply.abort` does."""
    repository = Repository(folder)
    with repository.hold():
        return apply.abort(repository, force=force)


def _preview(repository: Repository, options: UpdateOptions) -> Plan:
    refuse_interrupted(repository)
    return _plan(repository, options)


def _plan(repository: Repository, options: UpdateOptions) -> Plan:
    refuse_unfinished(repository)
    lock = require_lock(repository)
    spec = repository.folder / SPEC_NAME
    repository.watch(SPEC_NAME)
    loaded = load(spec, options.blueprints)
    if options.runtime is None:
        return make_plan(repository, loaded, lock, options)
    if options.runtime == "package" and lock.has_fork:
        loaded = Loaded(loaded.text, None, (_forked(spec),))
    else:
        loaded = _change_runtime(loaded, options.runtime, str(spec))
    plan = make_plan(repository, loaded, lock, options)
    plan = add_spec_change(repository, loaded, plan, options)
    found = tuple(_outdated_lock(repository, options.runtime))
    return plan._replace(report=plan.report.with_findings(found))


def _change_runtime(loaded: Loaded, runtime: Mode, file: str) -> Loaded:
    """Return provider.yaml with another ``runtime``; ``file`` is its name in findings.

    If the author's file cannot be edited safely, the result has no provider, and the finding
    ``spec-not-editable`` explains what to write.
    """
    if loaded.provider is None or loaded.provider.runtime == runtime:
        return loaded
    assert loaded.document is not None  # or there would be no provider
    keys = ("devDependencies", "dependencies", "releases")
    after = next(key for key in keys if key in loaded.document.data)
    result = set_keys(loaded.text, loaded.document, {"runtime": runtime}, after)
    if result.finding is not None:
        return Loaded(loaded.text, None, (result.finding,))
    changed = load_text(result.text, file)
    return changed._replace(overlay=loaded.overlay)


def _forked(spec: Path) -> Finding:
    return Finding(
        "runtime-fork",
        "the vendored runtime is a fork, whose changes the package does not have",
        Location(str(spec.parent / FOLDER)),
        hint=f"To give it up, run capsmith update --not-mine {FOLDER} --force, then this again.",
    )


def _outdated_lock(repository: Repository, runtime: Mode) -> Iterator[Finding]:
    """Report a ``requirements.lock`` for the other runtime mode, because images install only it."""
    text = (repository.read_bytes(_PYTHON_LOCK) or b"").decode(errors="replace")
    named = re.search(rf"^{DISTRIBUTION}==", text, re.MULTILINE) is not None
    if text and named != (runtime == "package"):
        yield Finding(
            "python-lock-behind",
            f"this was written {'without' if runtime == 'package' else 'with'} {DISTRIBUTION}",
            Location(str(repository.folder / _PYTHON_LOCK)),
            Severity.WARNING,
            hint="Run make lock, and commit the file.",
        )
