"""What there is to say about decisions: refusals, conflicts, files that are left over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from capsmith.findings import Finding, Location, Severity, ordered
from capsmith.merging.reconcile import Decision, Reason
from capsmith.report import Outcome
from capsmith.tree import FileTree, Owner

_SAID = {
    Reason.EDITED: Finding(
        "output-edited",
        "this generated file was edited since it was generated",
        Location(""),
        hint="Move the edit to a file that is yours (AGENTS.md lists them) and delete this one: "
        "it comes back.  Or take it over: capsmith update --mine PATH.",
    ),
    Reason.TAKEN_BACK: Finding(
        "output-taken-back",
        "this generated file was edited; the edit is gone, as --force said",
        Location(""),
        Severity.WARNING,
    ),
    Reason.FOREIGN: Finding(
        "output-not-ours",
        "this file has to be generated, but there is one that capsmith did not write",
        Location(""),
        hint="Move it away, generate, and bring back what you need of it.",
    ),
    Reason.WAS_YOURS: Finding(
        "output-was-yours",
        "this file was yours to edit and is capsmith's from now on",
        Location(""),
        hint="Move it away, run this again, and bring back what you need of it elsewhere.",
    ),
    Reason.NOW_SHARED: Finding(
        "output-now-shared",
        "this file of yours is kept; changes that capsmith has for it are merged from now on",
        Location(""),
        Severity.INFO,
    ),
    Reason.NOT_TEXT: Finding(
        "output-not-text",
        "this shared file is no text any more, and there is a new one to merge with it",
        Location(""),
        hint="Restore its text, or delete it: a shared file that you delete stays deleted.",
    ),
    Reason.LEFT_OVER: Finding(
        "output-left-over",
        "nothing in provider.yaml asks for this file any more; it is yours now",
        Location(""),
        Severity.WARNING,
        hint="Take over what you still need from it, and delete it.",
    ),
    Reason.BEHIND: Finding(
        "output-behind",
        "you took this file over, and what capsmith has for it has changed since",
        Location(""),
        Severity.INFO,
        hint="See capsmith update --diff; --not-mine gives it back.",
    ),
}


def remarks(decisions: Iterable[Decision], tree: FileTree) -> tuple[Finding, ...]:
    """The findings on ``decisions`` about bringing a repository in line with ``tree``."""
    decisions = tuple(decisions)
    found = [
        _located(_SAID[decision.reason], decision.path) for decision in decisions if decision.reason
    ]
    heirs = [
        decision.path
        for decision in decisions
        if decision.outcome is Outcome.CREATED and tree[decision.path].owner is Owner.SCAFFOLD
    ]
    found = [_with_heirs(f, heirs) if f.id == "output-left-over" else f for f in found]
    for decision in decisions:
        found += _conflicts(decision)
    return ordered(found)


def not_restored(path: str) -> Finding:
    """The finding on a file that was to be restored and was not."""
    return Finding(
        "restore-not-deleted",
        "this is no file of capsmith's that was deleted, so there is nothing to restore",
        Location(path),
        hint="Name it as the lock does: its path in the repository, with slashes.",
    )


def not_takeable(path: str) -> Finding:
    """The finding on a file that was to be taken over and is not capsmith's."""
    return Finding(
        "mine-already",
        "this is no file of capsmith's, so there is nothing to take over",
        Location(path),
        hint="Name it as the lock does: its path in the repository, with slashes.",
    )


def not_returnable(path: str) -> Finding:
    """The finding on a file that was to be given back and was never taken over."""
    return Finding(
        "mine-not",
        "this is no file that you took over, so there is nothing to give back",
        Location(path),
        hint="The lock says `mine: true` of those: .capsmith/lock.yaml.",
    )


def refused(decisions: Iterable[Decision]) -> tuple[Decision, ...]:
    """Those for whose sake nothing is done at all."""
    return tuple(each for each in decisions if each.outcome is Outcome.REFUSED)


def _conflicts(decision: Decision) -> Iterator[Finding]:
    for line in decision.conflicts:
        yield Finding(
            "update-conflict",
            "you and capsmith changed the same lines",
            Location(decision.path, line, 1),
            hint="Write what shall stand there in place of the marked lines, then run "
            "capsmith update --continue; --abort brings back what was.",
        )


def _with_heirs(finding: Finding, created: list[str]) -> Finding:
    """Name the new scaffolds beside a file that is left over: one may be its new name."""
    folder = finding.location.file.rpartition("/")[0]
    near = [path for path in created if path.rpartition("/")[0] == folder]
    if not near:
        return finding
    return Finding(
        finding.id,
        finding.message,
        finding.location,
        finding.severity,
        hint=f"If its kind was renamed, it goes on in {' or '.join(near)}: "
        "take over what you still need, and delete this one.",
    )


def _located(finding: Finding, path: str) -> Finding:
    return Finding(
        finding.id, finding.message, Location(path), finding.severity, finding.hint, finding.link
    )
