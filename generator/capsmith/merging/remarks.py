"""What there is to say about decisions: refusals, and files that nobody generates any more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from capsmith.findings import Finding, Location, Severity, ordered
from capsmith.merging.lock import LockedFile
from capsmith.merging.reconcile import Decision
from capsmith.report import Outcome
from capsmith.tree import FileTree, Owner


def remarks(
    decisions: Iterable[Decision], tree: FileTree, known: Mapping[str, LockedFile]
) -> tuple[Finding, ...]:
    """The findings on ``decisions`` about bringing a repository in line with ``tree``.

    ``known`` are the files that capsmith has written before.
    """
    found = []
    for decision in decisions:
        if decision.outcome is Outcome.REFUSED:
            path = decision.path
            found.append(_edited(path, known[path]) if path in known else _foreign(path))
        elif decision.outcome is Outcome.KEPT and decision.path not in tree:
            found.append(_left_over(decision.path))
    return ordered(found)


def _edited(path: str, known: LockedFile) -> Finding:
    if known.owner is Owner.MERGED:
        return Finding(
            "output-edited",
            "this shared file was edited, and there is a new text for it",
            Location(path),
            hint="Move yours away, generate, and bring your edits back: then they stay.",
        )
    return Finding(
        "output-edited",
        "this generated file was edited since it was generated",
        Location(path),
        hint="Move the edit to a file that is yours (AGENTS.md lists them) "
        "and restore this one, or delete it.",
    )


def _foreign(path: str) -> Finding:
    return Finding(
        "output-not-ours",
        "this file has to be generated, but there is one that capsmith did not write",
        Location(path),
        hint="Move it away, generate, and bring back what you need of it.",
    )


def _left_over(path: str) -> Finding:
    return Finding(
        "output-left-over",
        "nothing in provider.yaml asks for this file any more; it is yours now",
        Location(path),
        Severity.WARNING,
        hint="Take over what you still need from it, and delete it.",
    )
