"""update --contract and --drop-api-version: provider.yaml and the repository changed as one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from capsmith import resources
from capsmith.contract.load import known_versions, load_contract
from capsmith.contract.model import Contract
from capsmith.findings import Finding, has_errors
from capsmith.merging.differing import difference
from capsmith.merging.lock import SPEC_NAME, Lock
from capsmith.pipeline import engine, finishing
from capsmith.pipeline.engine import Asked, Plan
from capsmith.pipeline.understanding import Loaded, load, understand
from capsmith.pipeline.updating import lock_of, refuse_dirty, refuse_interrupted
from capsmith.provider.model import Provider
from capsmith.provider.resolve import link_rules
from capsmith.provider.upgrade.by_hand import by_hand
from capsmith.provider.upgrade.changes import forgotten, steps
from capsmith.provider.upgrade.facts import upgrade_facts
from capsmith.provider.upgrade.rewriting import rewritten
from capsmith.provider.upgrade.stages import next_step
from capsmith.provider.upgrade.wish import Wish, nonsense
from capsmith.report import FileOutcome, Outcome, Report
from capsmith.spec.editing import edited
from capsmith.spec.parse import parse
from capsmith.spec.place import Place
from capsmith.spec.quote import listed
from capsmith.tree import Owner
from capsmith.workspace.repository import Repository

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def upgrade(
    folder: Path, wish: Wish, asked: Asked, *, allow_dirty: bool = False, only_tell: bool = False
) -> tuple[Report, dict[str, Any] | None]:
    """Grant ``wish`` in provider.yaml, and bring the repository in line with that, as one change.

    The second result is the plan (:mod:`capsmith.provider.upgrade.facts`), None where there is
    none.

    Nothing is written when the wish is nonsense, when the new description or what is generated
    from it has errors, or with ``only_tell``.  A wish that is fulfilled already leaves the
    ordinary update.  Raises what :func:`capsmith.pipeline.updating.update` raises.
    """
    repository = Repository(folder)
    with repository.held():
        if only_tell:
            refuse_interrupted(repository)
        else:
            repository.complete_pending()
        engine.refuse_unfinished(repository)
        lock = lock_of(repository)
        loaded = granted(load(folder / SPEC_NAME, asked.blueprints), wish, str(folder / SPEC_NAME))
        plan = _with_spec(repository, loaded, engine.plan(repository, loaded, lock, asked), asked)
        if plan.is_possible and not only_tell:
            if not plan.is_nothing and not allow_dirty:
                refuse_dirty(folder, plan.overlay)
            finishing.carry_out(repository, plan)
        facts = _facts(repository, loaded, lock, wish) if plan.is_possible else None
        return plan.report, facts


def granted(loaded: Loaded, wish: Wish, file: str) -> Loaded:
    """The description after ``wish``; with errors and without a provider when that cannot be.

    ``file`` is only named in the findings.
    """
    if loaded.provider is None or has_errors(loaded.findings):
        return loaded
    parsed = parse(loaded.text, file)
    assert parsed.spec is not None
    assert parsed.document is not None
    wrong = nonsense(wish, parsed.spec, parsed.document)
    if wrong:
        return _refused(loaded.text, *wrong)
    values = rewritten(wish, parsed.spec, parsed.document)
    result = edited(loaded.text, parsed.document, values, after="contracts")
    if result.finding is not None:
        return _refused(loaded.text, result.finding)
    if not values:
        return loaded
    understood = understand(result.text, file)
    if wish.keep_api_version and understood.provider is not None:
        wrong = _forgetful(understood.provider, Place(parsed.document, (), []))
        if wrong:
            return _refused(loaded.text, *wrong)
    return replace(understood, overlay=loaded.overlay)


def _forgetful(provider: Provider, top: Place) -> tuple[Finding, ...]:
    """What is wrong with API versions that change their shape in place: they convert nothing."""
    place = top.at("contracts")
    for step in steps(provider)[-1:]:
        lost = forgotten(provider, step)
        if lost:
            message = f"stored objects would lose what people wrote in {listed(lost)}"
            both = f"--contract {step.old.version},{step.new.version}"
            hint = f"only an API version of its own is converted: first {both}, and release that"
            place.error("keep-api-version", message, hint)
    return tuple(place.findings)


def _facts(repository: Repository, loaded: Loaded, lock: Lock, wish: Wish) -> dict[str, Any] | None:
    assert loaded.provider is not None  # or nothing would be possible
    step = next_step(loaded.provider, all_contracts())
    if step is None:
        return None
    paths, manifests = _authors_files(repository, lock)
    hands = by_hand(loaded.provider, step, paths, manifests)
    return upgrade_facts(loaded.provider, step, hands, in_place=wish.keep_api_version)


def _authors_files(repository: Repository, lock: Lock) -> tuple[frozenset[str], dict[str, str]]:
    """The author's files: scaffolds that are there, and the texts of manifests, also added ones."""
    scaffolds = {path for path, file in lock.files.items() if file.owner is Owner.SCAFFOLD}
    paths = frozenset(repository.contents(scaffolds | lock.mine, scaffolds | lock.mine))
    beside = {
        other
        for path in scaffolds
        if path.endswith(".yaml")
        for other in repository.files_beside(path)
        if other.endswith((".yaml", ".yml")) and other not in lock.files
    }
    candidates = beside | {path for path in paths if path.endswith(".yaml")}
    contents = repository.contents(candidates, candidates)
    return paths, {path: text.decode(errors="replace") for path, text in contents.items()}


def all_contracts() -> tuple[Contract, ...]:
    """Every contract that is known, the oldest first."""
    schemas = resources.schemas()
    return tuple(load_contract(version, schemas) for version in known_versions())


def _refused(text: str, *findings: Finding) -> Loaded:
    contracts = {contract.version: contract for contract in all_contracts()}
    return Loaded(text, None, link_rules(findings, contracts))


def _with_spec(repository: Repository, loaded: Loaded, plan: Plan, asked: Asked) -> Plan:
    """``plan`` with the change of provider.yaml, if it is possible and there is one."""
    there = repository.content(SPEC_NAME) or b""
    mark = _BYTE_ORDER_MARK if there.startswith(_BYTE_ORDER_MARK) else b""
    content = mark + loaded.text.encode()
    if not plan.is_possible or content == there:
        return plan
    plan.change.write(SPEC_NAME, content, executable=None)
    diff = difference(SPEC_NAME, there, content) if asked.diff else ""
    outcomes = [*plan.report.outcomes, FileOutcome(SPEC_NAME, Outcome.UPDATED, diff)]
    report = replace(plan.report, outcomes=tuple(sorted(outcomes, key=lambda file: file.path)))
    return replace(plan, report=report)
