"""Find a provider's overlay, report a missing one, and copy it next to provider.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from capsmith import resources
from capsmith.errors import Refused
from capsmith.findings import Finding, Location
from capsmith.merging.lock import LOCK_PATH, Lock, LockedBlueprints
from capsmith.tree import SPEC_NAME, digest_texts
from capsmith.workspace.reading import locate_overlay, read_overlay, read_texts
from capsmith.workspace.repository import Change, Repository

if TYPE_CHECKING:
    from capsmith.blueprint.overlay import Overlay


def find_overlay(
    spec: Path, named: str, given: Path | None
) -> tuple[Overlay | None, tuple[Finding, ...]]:
    """Return the overlay for the provider.yaml at ``spec``, with findings about it.

    ``named`` is the folder named in provider.yaml, and ``given`` the folder on the command line.
    The overlay is None if there is none, if both are given, or if it has errors.  Raises
    UnreadableInput if the folder does not exist.
    """
    # Imported here because most providers have no overlay.
    from capsmith.blueprint.overlay import parse_overlay

    if named and given is not None:
        return None, (_twice(spec),)
    folder = given or locate_overlay(spec.parent, named)
    texts, unread = read_overlay(folder)
    overlay, found = parse_overlay(texts, read_texts(resources.blueprints()), str(folder), named)
    if unread:  # its texts would seem to be missing
        return None, tuple(unread)
    return overlay, tuple(found)


def find_missing_overlay(
    named: str, overlay: Overlay | None, lock: Lock | None, *, without: bool
) -> tuple[Finding, ...]:
    """Return a finding if the last run got an overlay on its command line and this run has none.

    ``named`` is the folder named in provider.yaml.  If ``without`` is true, the overlay may be
    missing, but it is an error if provider.yaml names one.
    """
    if without and named:
        return (_twice(Path(SPEC_NAME)),)
    former = lock.blueprints if lock is not None else None
    if former is None or former.folder or without or overlay is not None:
        return ()
    return (
        Finding(
            "overlay-missing",
            f"this was generated with blueprints (digest {former.digest}), but none are specified",
            Location(str(LOCK_PATH)),
            hint="Specify their folder with --blueprints DIR, or ignore them with --no-blueprints.",
        ),
    )


def make_lock_entry(overlay: Overlay | None) -> LockedBlueprints | None:
    """Return the entry that records an overlay in the lock, or None if there is no overlay."""
    return LockedBlueprints(overlay.digest, overlay.named) if overlay is not None else None


def add_overlay(
    repository: Repository, change: Change, overlay: Overlay, lock: Lock | None
) -> None:
    """Add a copy of the overlay named in provider.yaml to ``change``.

    Raises Refused if the repository already has a different folder of that name that it was not
    generated from, and UnreadableInput if that folder cannot be read.
    """
    present: dict[str, str] = {}
    folder = locate_overlay(repository.folder, overlay.named)
    if folder.exists():
        present, unread = read_overlay(folder)
        former = lock.blueprints if lock is not None else None
        unchanged = former is not None and former.digest == digest_texts(present)
        if unread or (present != overlay.texts and not unchanged):
            raise Refused(
                "output-other-overlay",
                "the blueprints here differ from the specified ones",
                file=str(folder),
                hint="Run capsmith generate on the provider.yaml beside them.",
            )
    for path, text in overlay.texts.items():
        if present.get(path) != text:
            change.write(f"{overlay.named}/{path}", text)
    for path in present.keys() - overlay.texts.keys():
        change.remove(f"{overlay.named}/{path}")


def _twice(spec: Path) -> Finding:
    return Finding(
        "overlay-twice",
        "blueprints are set in provider.yaml and on the command line",
        Location(str(spec)),
        hint="Change `blueprints` there, or omit the option.",
    )
