"""generate, new: a repository brought in line with its provider.yaml."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path

from capsmith.errors import Refused
from capsmith.findings import has_errors
from capsmith.merging.lock import Lock
from capsmith.pipeline import engine
from capsmith.pipeline.engine import Asked
from capsmith.pipeline.finishing import carry_out
from capsmith.pipeline.overlaying import add_overlay
from capsmith.pipeline.understanding import SPEC_NAME, Loaded, load, understand
from capsmith.report import Report
from capsmith.workspace.repository import Change, Repository

_NOT_FOREIGN = frozenset({".git", ".capsmith"})


def generate(
    path: Path, folder: Path, *, beside_others: bool = False, asked: Asked | None = None
) -> Report:
    """Bring the repository in ``folder`` in line with the provider.yaml at ``path``.

    Everything is rendered before one byte is written; nothing is written when there is an error.
    ``beside_others`` allows a first run in a folder that holds other files; none is replaced.
    ``asked`` may name an overlay.  Raises UnreadableInput, Refused, DiskError or BlueprintError.
    """
    asked = asked or Asked()
    loaded = load(path, asked.blueprints)
    repository = Repository(folder)
    with repository.held():
        own = (
            {path.name, *loaded.blueprints.split("/")[:1]}
            if path.parent.resolve() == folder.resolve()
            else set()
        )
        welcome = set(repository.names()) if beside_others else own
        in_place = path.resolve() == (folder / SPEC_NAME).resolve()
        return _bring_in_line(repository, loaded, welcome, asked, add_spec=not in_place)


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
        return _bring_in_line(repository, loaded, welcome, Asked(), add_spec=True)


def _bring_in_line(
    repository: Repository,
    loaded: Loaded,
    welcome: Container[str],
    asked: Asked,
    *,
    add_spec: bool,
) -> Report:
    """Generate; ``welcome`` are the names in a folder without a lock that may be there."""
    if loaded.provider is None or has_errors(loaded.findings):
        return Report(findings=loaded.findings)
    repository.complete_pending()
    engine.refuse_unfinished(repository)
    lock = engine.read_lock(repository)
    if lock is None:
        _refuse_foreign(repository, welcome)
    plan = engine.plan(repository, loaded, lock, asked)
    if add_spec and plan.is_possible:
        _add_spec(repository, plan.change, loaded.text, lock)
        if loaded.overlay is not None and loaded.overlay.named:
            add_overlay(repository, plan.change, loaded.overlay, lock)
    carry_out(repository, plan)
    return plan.report


def _refuse_foreign(repository: Repository, welcome: Container[str]) -> None:
    foreign = [
        name for name in repository.names() if name not in _NOT_FOREIGN and name not in welcome
    ]
    if foreign:
        named = foreign if len(foreign) <= 8 else [*foreign[:7], f"{len(foreign) - 7} more"]
        raise Refused(
            "output-not-empty",
            f"the folder holds files that capsmith did not write: {', '.join(named)}",
            file=str(repository.folder),
            hint="Generate into a new folder, or say --beside-others: nothing is replaced then.",
        )


def _add_spec(repository: Repository, change: Change, text: str, lock: Lock | None) -> None:
    """Keep the provider.yaml beside what was generated from it."""
    there = repository.read(SPEC_NAME)
    if there not in (None, text) and (
        lock is None or engine.spec_digest(there or "") != lock.spec_digest
    ):
        raise Refused(
            "output-other-spec",
            "the folder has another provider.yaml, which differs from the one named",
            file=str(repository.folder / SPEC_NAME),
            hint="Run capsmith generate on the provider.yaml in the folder.",
        )
    if there != text:
        change.write(SPEC_NAME, text)
