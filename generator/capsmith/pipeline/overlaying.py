"""Overlays: which one there is, and what it makes of a provider."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from capsmith import resources
from capsmith.blueprint.overlay import Overlay, overlay_of
from capsmith.errors import Refused
from capsmith.findings import Finding, Location, ordered
from capsmith.merging.lock import LOCK_PATH, Lock, LockedBlueprints
from capsmith.pipeline import building
from capsmith.pipeline.understanding import Loaded
from capsmith.tree import FileTree, digest_of_texts
from capsmith.workspace.overlay import own_overlay, read_overlay
from capsmith.workspace.repository import Change, Repository
from capsmith.workspace.texts import read_texts


def with_overlay(loaded: Loaded, spec: Path, given: Path | None) -> Loaded:
    """``loaded`` with the overlay that it names, or that is ``given`` on the command line.

    ``spec`` is its provider.yaml.  Raises UnreadableInput when there is no such folder.
    """
    if loaded.blueprints and given is not None:
        return replace(loaded, findings=ordered((*loaded.findings, _twice(spec))))
    where = given or own_overlay(spec.parent, loaded.blueprints)
    texts, unread = read_overlay(where)
    overlay, found = overlay_of(
        texts, read_texts(resources.blueprints()), str(where), loaded.blueprints
    )
    if unread:  # what was not read would be missed
        return replace(loaded, findings=ordered((*loaded.findings, *unread)))
    return replace(loaded, findings=ordered((*loaded.findings, *found)), overlay=overlay)


def tried(loaded: Loaded) -> tuple[Finding, ...]:
    """All findings on a provider with an overlay, those on the files that come out included."""
    return ordered((*loaded.findings, *tree_of(loaded)[1]))


def tree_of(loaded: Loaded) -> tuple[FileTree | None, tuple[Finding, ...]]:
    """The files of a provider, and what is wrong with its overlay or breaks the contract.

    Raises BlueprintError for a broken blueprint of capsmith's own.
    """
    assert loaded.provider is not None
    if loaded.overlay is None:
        tree = building.build(loaded.provider)
        return tree, building.conformance(tree, loaded.provider)
    return building.build_overlaid(loaded.provider, loaded.overlay)


def missed(loaded: Loaded, lock: Lock | None, *, without: bool) -> tuple[Finding, ...]:
    """What there is to say when the overlay is missing that a repository was generated with.

    ``without`` says that it shall be.
    """
    if without and loaded.blueprints:
        return (_twice(Path("provider.yaml")),)
    over = lock.blueprints if lock is not None else None
    if over is None or over.folder or without or loaded.overlay is not None:
        return ()
    return (
        Finding(
            "overlay-missing",
            f"this was generated with blueprints of digest {over.digest}, and there are none now",
            Location(str(LOCK_PATH)),
            hint="Name their folder with --blueprints DIR, or go on without: --no-blueprints.",
        ),
    )


def locked(overlay: Overlay | None) -> LockedBlueprints | None:
    """What the lock says of an overlay."""
    return LockedBlueprints(overlay.digest, overlay.named) if overlay is not None else None


def add_overlay(
    repository: Repository, change: Change, overlay: Overlay, lock: Lock | None
) -> None:
    """Keep the overlay that provider.yaml names beside it, in another folder.

    Raises Refused when there is another one that nothing was generated from, UnreadableInput
    when it cannot be read.
    """
    there: dict[str, str] = {}
    folder = own_overlay(repository.folder, overlay.named)
    if folder.exists():
        there, unread = read_overlay(folder)
        over = lock.blueprints if lock is not None else None
        unchanged = over is not None and over.digest == digest_of_texts(there)
        if unread or (there != overlay.texts and not unchanged):
            raise Refused(
                "output-other-overlay",
                "there are other blueprints here than those that were named",
                file=str(folder),
                hint="Run capsmith generate on the provider.yaml beside them.",
            )
    for path, text in overlay.texts.items():
        if there.get(path) != text:
            change.write(f"{overlay.named}/{path}", text)
    for path in there.keys() - overlay.texts.keys():
        change.remove(f"{overlay.named}/{path}")


def _twice(spec: Path) -> Finding:
    return Finding(
        "overlay-twice",
        "this names its blueprints, so the command line cannot",
        Location(str(spec)),
        hint="change `blueprints` there, or leave the option out",
    )
