"""Write a new repository from the files that an earlier run generated from the same text.

The same provider.yaml and the same capsmith always result in the same files.  A first run without
findings records them in the user's cache; another first run on the same text only writes them.

The shortcut, which serves CI, labs and tests, must never write what a full run would not.  In any
doubtful case it returns None, and the full run follows.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import NamedTuple

from capsmith import __version__, resources
from capsmith.errors import CapsmithError
from capsmith.report import Report
from capsmith.tree import SPEC_NAME, digest
from capsmith.workspace.cache import FolderCache
from capsmith.workspace.files import is_same_path
from capsmith.workspace.journal import Write
from capsmith.workspace.reading import read_document
from capsmith.workspace.repository import Change, Repository

_SLOTS = 16
"""How many repositories the cache holds: one takes 1 to 2 MB, and tests generate thousands."""
_DIGEST_LENGTH = len(digest(""))


class Output(NamedTuple):
    """What a first run wrote, without provider.yaml, and its report."""

    writes: dict[str, Write]
    report: Report


def record_output(text: str, output: Output) -> None:
    """Record in the user's cache what a first run generated from the provider.yaml ``text``.

    The run must have had no overlay, no other files in its folder, and no findings.
    """
    cache, own = FolderCache.of_user(), resources.compute_fingerprint()
    if cache is not None and own is not None and not output.report.findings:
        content = pickle.dumps(output, pickle.HIGHEST_PROTOCOL)
        cache.put(_slot(text), f"{digest(text)}{_generator(own)}\n".encode() + content)


def reuse_output(spec: Path, folder: Path) -> Report | None:
    """Write what a former run generated from ``spec`` to a new ``folder``, and return its report.

    Returns None, and writes nothing, if that run is not recorded or if the folder has other files.
    Raises the same errors as :meth:`Repository.apply`.
    """
    try:
        text = read_document(spec)
    except CapsmithError:
        return None
    output = _recall(text)
    if output is None:
        return None
    repository = Repository(folder)
    with repository.hold():
        in_place = is_same_path(spec, folder / SPEC_NAME)
        if {*repository.list_names()} - {".git", *([SPEC_NAME] if in_place else [])}:
            return None
        # Reading also makes the repository refuse a file that appears from now on.
        if repository.read_existing(output.writes):
            return None
        change = Change()
        change.writes.update(output.writes)
        if not in_place:
            change.write(SPEC_NAME, text)
        repository.apply(change)
    return output.report


def _recall(text: str) -> Output | None:
    cache = FolderCache.of_user()
    content = cache.get(_slot(text)) if cache is not None else None
    # Compared first, because the fingerprint needs the state of every file of capsmith.
    if content is None or content[:_DIGEST_LENGTH] != digest(text).encode():
        return None
    own = resources.compute_fingerprint()
    generator, _, pickled = content[_DIGEST_LENGTH:].partition(b"\n")
    if own is None or generator != _generator(own).encode():
        return None
    output: Output = pickle.loads(pickled)
    return output


def _slot(text: str) -> str:
    return f"output-{int(digest(text)[-2:], 16) % _SLOTS}"


def _generator(fingerprint: str) -> str:
    return f"{__version__}-{fingerprint}"
