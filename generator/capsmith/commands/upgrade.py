"""The options `update --contract` and `--drop-api-version`, which change provider.yaml first."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from capsmith.commands.apply import apply_plan
from capsmith.commands.load import Loaded, load, load_contracts, load_text
from capsmith.commands.plan import Plan, UpdateOptions, add_spec_change, make_plan
from capsmith.commands.preconditions import (
    complete_interrupted,
    refuse_dirty,
    refuse_interrupted,
    refuse_sparse,
    refuse_unfinished,
    require_lock,
)
from capsmith.findings import Finding, has_errors
from capsmith.merging.lock import Lock
from capsmith.provider.model import Provider
from capsmith.provider_upgrade.changes import find_lost_fields, list_steps
from capsmith.provider_upgrade.facts import describe_upgrade
from capsmith.provider_upgrade.manual_steps import list_manual_steps
from capsmith.provider_upgrade.request import UpgradeRequest, update_values, validate_request
from capsmith.provider_upgrade.stages import find_next_step
from capsmith.report import Report
from capsmith.resolving.resolve import link_rules
from capsmith.tree import SPEC_NAME
from capsmith.workspace.repository import Repository
from capsmith.yamldoc.document import PathReporter
from capsmith.yamldoc.editing import set_keys
from capsmith.yamldoc.quote import join_names

_MANIFESTS = (".yaml", ".yml")


def upgrade(
    folder: Path, request: UpgradeRequest, options: UpdateOptions, *, dry_run: bool = False
) -> tuple[Report, dict[str, Any] | None]:
    """Apply ``request`` to provider.yaml and update the repository, in one step.

    Returns the report, and the upgrade plan as JSON data (:mod:`capsmith.provider_upgrade.facts`)
    or None if there is no plan.

    Nothing is written with ``dry_run``, for an invalid request, or if the new provider.yaml or
    anything generated from it has errors.  A request that changes nothing results in an ordinary
    update.  Raises the same errors as :func:`capsmith.commands.update.update`.
    """
    repository = Repository(folder)
    with repository.hold():
        completed: tuple[Finding, ...] = ()
        if dry_run:
            refuse_interrupted(repository)
        else:
            completed = complete_interrupted(repository)
        refuse_unfinished(repository)
        lock = require_lock(repository)
        spec = folder / SPEC_NAME
        repository.watch(SPEC_NAME)
        loaded = load(spec, options.blueprints)
        # The completed run may have been this very command, so repeating it must not fail.
        if completed:
            request = _without_dropped(request, loaded)
        loaded = apply_request(loaded, request, str(spec))
        plan = make_plan(repository, loaded, lock, options)
        plan = add_spec_change(repository, loaded, plan, options)
        facts = _facts(repository, loaded, lock, request, plan) if plan.is_possible else None
        if facts is not None:
            facts["state"] = "preview" if dry_run else "conflicts" if plan.conflicts else "done"
        if plan.is_possible and not dry_run:
            if not plan.is_nothing and not options.allow_dirty:
                refuse_dirty(folder, plan.overlay, plan.change.writes)
                refuse_sparse(folder, plan.records.writes)
            apply_plan(repository, plan)
        return plan.report.with_findings(completed), facts


def _without_dropped(request: UpgradeRequest, loaded: Loaded) -> UpgradeRequest:
    """Return a request without API versions that a completed run has already dropped."""
    versions = loaded.draft.api_versions if loaded.draft is not None else ()
    names = {version.name for version in versions}
    return replace(request, drop=tuple(name for name in request.drop if name in names))


def apply_request(loaded: Loaded, request: UpgradeRequest, file: str) -> Loaded:
    """Return provider.yaml loaded with the changes in ``request`` applied, without writing it.

    If the request is refused, the result has no provider, and its findings give the reasons.
    ``file`` is the name to use in findings.
    """
    if loaded.provider is None or has_errors(loaded.findings):
        return loaded
    assert loaded.document is not None
    assert loaded.draft is not None
    errors = validate_request(request, loaded.draft, loaded.document)
    if errors:
        return _refused(loaded.text, *errors)
    values = update_values(request, loaded.draft, loaded.document)
    result = set_keys(loaded.text, loaded.document, values, after="contracts")
    if result.finding is not None:
        return _refused(loaded.text, result.finding)
    if not values:
        return loaded
    updated = load_text(result.text, file)
    # Judged by the new description, because only that shows which fields the new contract has.
    if request.keep_api_version and updated.provider is not None:
        errors = _losses(updated.provider, PathReporter(loaded.document, (), []))
        if errors:
            return _refused(loaded.text, *errors)
    return updated._replace(overlay=loaded.overlay)


def _losses(provider: Provider, top: PathReporter) -> tuple[Finding, ...]:
    """Report fields that stored objects lose without conversion if versions keep their names."""
    reporter = top.at("contracts")
    for step in list_steps(provider)[-1:]:
        lost = find_lost_fields(provider, step)
        if lost:
            message = f"stored objects would lose user data in {join_names(lost)}"
            both = f"--contract {step.old.version},{step.new.version}"
            hint = f"Run {both} first, and release that: only separate API versions are converted."
            reporter.add_error("keep-api-version", message, hint)
    return tuple(reporter.findings)


def _facts(
    repository: Repository, loaded: Loaded, lock: Lock, request: UpgradeRequest, plan: Plan
) -> dict[str, Any] | None:
    assert loaded.provider is not None  # or nothing would be possible
    step = find_next_step(loaded.provider, load_contracts())
    if step is None:
        return None
    paths, manifests = _author_files(repository, lock, plan)
    manual_steps = list_manual_steps(loaded.provider, step, paths, manifests)
    return describe_upgrade(loaded.provider, step, manual_steps, in_place=request.keep_api_version)


def _author_files(
    repository: Repository, lock: Lock, plan: Plan
) -> tuple[frozenset[str], dict[str, str]]:
    """Return the author's paths after ``plan``, and the content of manifests by path.

    Files that the plan adds are included.
    """
    present = repository.read_existing(lock.author_paths, lock.author_paths)
    for path in present.keys() & plan.change.writes.keys():
        present[path] = plan.change.writes[path].content
    manifests = {path: text for path, text in present.items() if _is_manifest(path)}
    manifest_scaffolds = sorted(filter(_is_manifest, lock.scaffolds))
    for folder in dict.fromkeys(path.rpartition("/")[0] for path in manifest_scaffolds):
        for other, text in repository.read_folder(folder, _MANIFESTS).items():
            if other not in lock.files:
                manifests.setdefault(other, text)
    texts = {path: text.decode(errors="replace") for path, text in manifests.items()}
    return frozenset(present), texts


def _is_manifest(path: str) -> bool:
    return path.endswith(_MANIFESTS)


def _refused(text: str, *findings: Finding) -> Loaded:
    contracts = {contract.version: contract for contract in load_contracts()}
    return Loaded(text, None, link_rules(findings, contracts))
