"""Read the folder of an overlay: files of the author, not yet trusted."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from capsmith.errors import Refused, UnreadableInput
from capsmith.findings import Finding, Location
from capsmith.safetext import RelativePath
from capsmith.workspace.files import resolve_inside
from capsmith.workspace.reading import read_document

MOST_FILES = 500
MOST_BYTES = 256 * 1024
"""Of one file."""
_DEEPEST = 20
_IGNORED = ("README", "LICENSE", "LICENCE", "COPYING", "NOTICE", "CHANGELOG")


def read_overlay(folder: Path) -> tuple[dict[str, str], tuple[Finding, ...]]:
    """Return the texts of an overlay by POSIX path, and findings on files that cannot be read.

    The texts are sorted by path, with ``\\n`` ends.  In the folder itself, hidden files and
    documents such as README.md are no part of it.  Raises UnreadableInput when there is no such
    folder.  Ids of findings: ``overlay-path``, ``overlay-too-large`` and those of
    :func:`capsmith.workspace.reading.read_document`.
    """
    _require_folder(folder)
    texts: dict[str, str] = {}
    findings: list[Finding] = []
    paths = _first_paths(folder)
    if len(paths) > MOST_FILES:
        hint = "Keep only the files that must differ from capsmith's."
        message = f"more than {MOST_FILES} files"
        return {}, (Finding("overlay-too-large", message, Location(str(folder)), hint=hint),)
    for path in paths:
        where = str(folder / path)
        try:
            text = read_document(folder / path, MOST_BYTES)
            texts[str(RelativePath(path))] = text.replace("\r\n", "\n")
        except UnreadableInput as error:
            found = error.finding
            findings.append(Finding(found.id, found.message, found.location, hint=_HINT))
        except ValueError:
            message = (
                "a path in an overlay must be short and contain only letters, digits and ._@+-"
            )
            findings.append(Finding("overlay-path", message, Location(where), hint="Rename it."))
    return dict(sorted(texts.items())), tuple(findings)


def locate_overlay(repository: Path, named: str) -> Path:
    """Return the folder ``named`` by provider.yaml: inside ``repository``, without links.

    Raises UnreadableInput for anything else.
    """
    try:
        return resolve_inside(repository, named)
    except (Refused, ValueError) as error:
        message = (
            error.finding.message
            if isinstance(error, Refused)
            else "not a path inside the repository"
        )
        raise UnreadableInput(
            "overlay-not-a-folder",
            message,
            file=str(repository / named),
            hint="Set `blueprints` to a folder beside provider.yaml that contains the files.",
        ) from error


_HINT = "Keep only regular text files of moderate size in an overlay, and no links."


def _require_folder(folder: Path) -> None:
    """Raise UnreadableInput unless this is a folder."""
    if folder.is_dir() and not folder.is_symlink():
        return
    what = "a symbolic link" if folder.is_symlink() else "not a folder"
    if not os.path.lexists(folder):
        what = "nothing"
    raise UnreadableInput(
        "overlay-not-a-folder",
        f"blueprints must be in a folder: this is {what}",
        file=str(folder),
        hint="Specify the folder that contains project/, macros/ or manifest.yaml.",
    )


def _first_paths(folder: Path) -> list[str]:
    """Return the paths of the files, but no more than one above the limit.

    Raises UnreadableInput for a folder that cannot be read.
    """
    try:
        return list(islice(_paths(folder, "", 0), MOST_FILES + 1))
    except OSError as error:
        raise UnreadableInput(
            "input-unreadable",
            f"cannot be read: {error.strerror or error}",
            file=str(error.filename or folder),
            hint="Check its permissions.",
        ) from error


def _paths(folder: Path, prefix: str, depth: int) -> Iterator[str]:
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        if not prefix and entry.name.startswith((".", *_IGNORED)):
            continue
        path = prefix + entry.name
        if entry.is_dir(follow_symlinks=False) and depth < _DEEPEST:
            yield from _paths(folder / entry.name, path + "/", depth + 1)
        else:
            yield path
