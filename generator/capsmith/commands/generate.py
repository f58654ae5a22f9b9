"""The commands `generate` and `new`: generate a repository from its provider.yaml."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from pathlib import Path

from capsmith.commands.apply import apply_plan
from capsmith.commands.load import Loaded, load, load_text
from capsmith.commands.overlay import add_overlay
from capsmith.commands.plan import UpdateOptions, digest_spec, make_plan
from capsmith.commands.preconditions import complete_interrupted, read_lock, refuse_unfinished
from capsmith.commands.recorded_output import Output, record_output
from capsmith.errors import Refused
from capsmith.findings import has_errors
from capsmith.merging.lock import Lock
from capsmith.report import Report
from capsmith.tree import SPEC_NAME
from capsmith.workspace.files import is_same_path
from capsmith.workspace.repository import Change, Repository

_NOT_FOREIGN = frozenset({".git", ".capsmith"})


def generate(
    path: Path,
    folder: Path,
    *,
    beside_others: bool = False,
    options: UpdateOptions | None = None,
    record: bool = False,
) -> Report:
    """Generate the repository in ``folder`` from the provider.yaml at ``path``, or update it.

    Nothing is written until everything has been rendered, or if there is an error.
    ``beside_others`` allows a first run in a folder that has other files, which are never replaced.
    ``options`` may name an overlay.  ``record`` keeps what a first run writes, for
    :func:`capsmith.commands.recorded_output.reuse_output`.  Raises UnreadableInput for invalid
    files, Refused if the author's files could be lost, DiskError if a write fails, and
    BlueprintError for a broken blueprint.
    """
    options = options or UpdateOptions()
    loaded = load(path, options.blueprints)
    repository = Repository(folder)
    with repository.hold():
        own = (
            {path.name, *loaded.blueprints.split("/")[:1]}
            if is_same_path(path.parent, folder)
            else set()
        )
        allowed = set(repository.list_names()) if beside_others else own
        # The same file under another name, or through a link, must not be copied onto itself.
        in_place = is_same_path(path, folder / SPEC_NAME)
        return _bring_in_line(
            repository, loaded, allowed, options, add_spec=not in_place, record=record
        )


def create(text: str, folder: Path, *, beside_others: bool = False) -> Report:
    """Write a new provider.yaml with the content ``text``, and generate the repository from it.

    ``beside_others`` allows a folder that has other files, which are never replaced.  Raises
    Refused if a provider.yaml exists, and the same errors as :func:`generate`.
    """
    repository = Repository(folder)
    with repository.hold():
        names = repository.list_names()
        if SPEC_NAME in names:
            raise Refused(
                "provider-exists",
                "a provider already exists here",
                file=str(folder / SPEC_NAME),
                hint="Edit it and run capsmith generate, or specify another folder.",
            )
        loaded = load_text(text, str(folder / SPEC_NAME))
        allowed = set(names) if beside_others else set()
        return _bring_in_line(repository, loaded, allowed, UpdateOptions(), add_spec=True)


def _bring_in_line(
    repository: Repository,
    loaded: Loaded,
    allowed: Container[str],
    options: UpdateOptions,
    *,
    add_spec: bool,
    record: bool = False,
) -> Report:
    """Generate or update the repository and return the report.

    ``allowed`` are the names that a folder without a lock may contain.  With ``add_spec``, the
    provider.yaml is written as well.
    """
    if loaded.provider is None or has_errors(loaded.findings):
        return Report().with_findings(loaded.findings)
    # Only with a valid description: an invalid one must leave even an interrupted run unchanged.
    completed = complete_interrupted(repository)
    refuse_unfinished(repository)
    lock = read_lock(repository)
    # With a lock, each file is known or refused by name; without one, the folder is probably the
    # wrong one.
    if lock is None:
        _refuse_foreign(repository, allowed)
    is_alone = record and lock is None and not {*repository.list_names()} - {".git", SPEC_NAME}
    plan = make_plan(repository, loaded, lock, options)
    if add_spec and plan.is_possible:
        _add_spec(repository, plan.change, loaded.text, lock)
        if loaded.overlay is not None and loaded.overlay.named:
            add_overlay(repository, plan.change, loaded.overlay, lock)
    apply_plan(repository, plan)
    is_first = lock is None and plan.is_possible
    report = replace(plan.report.with_findings(completed), is_first=is_first)
    if is_alone and is_first and loaded.overlay is None:
        generated = {path: file for path, file in plan.change.writes.items() if path != SPEC_NAME}
        record_output(loaded.text, Output(generated, report))
    return report


def _refuse_foreign(repository: Repository, allowed: Container[str]) -> None:
    foreign = [
        name for name in repository.list_names() if name not in _NOT_FOREIGN and name not in allowed
    ]
    if foreign:
        named = foreign if len(foreign) <= 8 else [*foreign[:7], f"{len(foreign) - 7} more"]
        raise Refused(
            "output-not-empty",
            f"the folder contains files that capsmith did not write: {', '.join(named)}",
            file=str(repository.folder),
            hint="Generate into a new folder, or pass --beside-others, which replaces nothing.",
        )


def _add_spec(repository: Repository, change: Change, text: str, lock: Lock | None) -> None:
    """Add provider.yaml to the change unless the repository already contains it.

    Raises Refused (``output-other-spec``) if the repository has a different provider.yaml.
    """
    present = repository.read_text(SPEC_NAME)
    if present not in (None, text) and (
        lock is None or digest_spec(present or "") != lock.spec_digest
    ):
        raise Refused(
            "output-other-spec",
            "the folder has a provider.yaml that differs from the specified one",
            file=str(repository.folder / SPEC_NAME),
            hint="Run capsmith generate on the provider.yaml in the folder.",
        )
    if present != text:
        change.write(SPEC_NAME, text)
