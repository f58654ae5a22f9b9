"""Report decisions about files as findings: refusals, conflicts, leftover files and diffs."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator

from capsmith.findings import Finding, Location, Severity
from capsmith.merging.decide import Decision, Reason
from capsmith.report import Outcome
from capsmith.tree import FileTree, Owner

_FINDINGS = {
    Reason.EDITED: Finding(
        "output-edited",
        "this generated file was edited",
        Location(""),
        hint="Move the edit to a file that is yours (CONTRIBUTING.md lists them) and delete this "
        "one: it comes back.  Or discard the edit: --force.  Or take over the file: --mine PATH.",
    ),
    Reason.TAKEN_BACK: Finding(
        "output-taken-back",
        "this generated file was edited; --force discarded the edit",
        Location(""),
        Severity.WARNING,
        hint="Restore the edit from version control if you still need it.",
    ),
    Reason.FOREIGN: Finding(
        "output-not-ours",
        "this file must be generated, but capsmith did not write the existing one",
        Location(""),
        hint="Move it away, generate, and bring back what you need.",
    ),
    Reason.WAS_YOURS: Finding(
        "output-was-yours",
        "this file was yours, but capsmith now generates it",
        Location(""),
        hint="Move it away, run this again, and put what you need in another file.  "
        "Or keep it as it is: capsmith update --mine PATH.",
    ),
    Reason.NOW_SHARED: Finding(
        "output-now-shared",
        "your file is kept; capsmith merges its changes into it from now on",
        Location(""),
        Severity.INFO,
    ),
    Reason.NOT_TEXT: Finding(
        "output-not-text",
        "this shared file is no longer text, so it cannot be merged",
        Location(""),
        hint="Restore its text, or delete it: a shared file that you delete stays deleted.",
    ),
    Reason.IN_CONFLICT: Finding(
        "output-in-conflict",
        "this shared file has unresolved conflicts, so it cannot be merged",
        Location(""),
        hint="Edit the marked lines to the final text, and run this again.",
    ),
    Reason.LEFT_OVER: Finding(
        "output-left-over",
        "provider.yaml no longer requires this file; it is yours now",
        Location(""),
        Severity.WARNING,
        hint="Move what you still need to another file, and delete this one.",
    ),
    Reason.UNEDITED_LEFT_OVER: Finding(
        "output-left-over",
        "provider.yaml no longer requires this file; it is yours now",
        Location(""),
        Severity.WARNING,
        hint="Delete it: you have not edited it.",
    ),
    Reason.ADOPTED: Finding(
        "scaffold-exists",
        "your file is kept in place of the version of capsmith",
        Location(""),
        Severity.INFO,
        hint="See that version with capsmith update --diff --restore PATH.",
    ),
    Reason.EDITED_LEFT_OVER: Finding(
        "output-edited",
        "this generated file was edited, and capsmith no longer generates it",
        Location(""),
        hint="Move the edit to a file that is yours, and delete this one.  Or keep it there as "
        "your file: capsmith update --force.",
    ),
    Reason.MINE_LEFT_OVER: Finding(
        "output-mine-left-over",
        "you took over this file, and capsmith no longer generates it under this name",
        Location(""),
        Severity.INFO,
        hint="Compare it with the files that this run created, and delete it if you no longer "
        "need it.",
    ),
    Reason.BEHIND: Finding(
        "output-behind",
        "you took over this file, and capsmith has a newer version of it",
        Location(""),
        Severity.INFO,
        hint="Run capsmith update --diff to see it; --not-mine hands the file back.",
    ),
    Reason.SCAFFOLD_BEHIND: Finding(
        "scaffold-behind",
        "you edited this file, and capsmith has a new version of it",
        Location(""),
        Severity.INFO,
        hint="See it with capsmith update --diff --restore PATH; replace your file with it: "
        "--restore PATH --force.",
    ),
    Reason.SCAFFOLD_HELD: Finding(
        "scaffold-behind",
        "capsmith has a new version of this file, which may not fit the code that you edited",
        Location(""),
        Severity.INFO,
        hint="See it with capsmith update --diff --restore PATH; write it with --restore PATH.",
    ),
    Reason.REPLACED: Finding(
        "scaffold-replaced",
        "the version of capsmith replaced your edited file",
        Location(""),
        Severity.WARNING,
        hint="Restore the edit from version control if you still need it.",
    ),
    Reason.NOT_REPLACED: Finding(
        "scaffold-edited",
        "you edited this file, so capsmith does not replace it",
        Location(""),
        hint="Run capsmith update --restore PATH --force to discard your edits; --diff shows them.",
    ),
}


def report_decisions(decisions: Iterable[Decision], tree: FileTree) -> tuple[Finding, ...]:
    """Return findings about ``decisions``. ``tree`` is the tree that the update generates."""
    decisions = tuple(decisions)
    found = [
        _located(_FINDINGS[decision.reason], decision) for decision in decisions if decision.reason
    ]
    successors = [
        decision.path
        for decision in decisions
        if decision.outcome is Outcome.CREATED and tree[decision.path].owner is Owner.SCAFFOLD
    ]
    edited = {decision.path for decision in decisions if decision.reason is Reason.LEFT_OVER}
    found = [_with_successors(f, successors) if f.location.file in edited else f for f in found]
    for decision in decisions:
        if decision.outcome is Outcome.CONFLICTED:
            found += _conflicts(decision)
    return tuple(found)


def report_not_restored(path: str) -> Finding:
    """Return the finding for a file that --restore names but that cannot be restored."""
    return Finding(
        "restore-not-deleted",
        "there is nothing to restore: capsmith does not write this file, or it was not deleted",
        Location(path),
        hint="Use its path as in .capsmith/lock.yaml: relative to the repository, with slashes.",
    )


def report_not_takeable(path: str) -> Finding:
    """Return the finding for a file that cannot be taken over: capsmith does not manage it."""
    return Finding(
        "mine-already",
        "capsmith does not manage this file, so there is nothing to take over",
        Location(path),
        hint="Use its path as in .capsmith/lock.yaml: relative to the repository, with slashes.",
    )


def report_not_returnable(path: str) -> Finding:
    """Return the finding for a file that cannot be handed back because it was never taken over."""
    return Finding(
        "mine-not",
        "you did not take over this file, so there is nothing to hand back",
        Location(path),
        hint="Use the path of a file with `mine: true` in .capsmith/lock.yaml.",
    )


def select_refused(decisions: Iterable[Decision]) -> tuple[Decision, ...]:
    """Return the refusals, any of which prevents the whole plan from being applied."""
    return tuple(each for each in decisions if each.outcome is Outcome.REFUSED)


def _conflicts(decision: Decision) -> Iterator[Finding]:
    for line in decision.conflicts:
        yield Finding(
            "update-conflict",
            "you and capsmith changed the same lines",
            Location(decision.path, line, 1),
            hint="Edit the marked lines to the final text, then run "
            "capsmith update --continue; --abort restores the previous state.",
        )


def _with_successors(finding: Finding, created: list[str]) -> Finding:
    """Add the new scaffolds to the finding on a leftover file: one may be its replacement."""
    former = finding.location.file
    folder = former.rpartition("/")[0]
    near = [path for path in created if path.rpartition("/")[0] == folder]
    moved = [path for path in created if _in_package(path) == _in_package(former) != ""]
    if moved:
        hint = f"Continue in {moved[0]}: move what you still need there, and delete this one."
        return finding._replace(hint=hint)
    if not near:
        return finding
    return Finding(
        finding.id,
        finding.message,
        finding.location,
        finding.severity,
        hint=f"If its kind was renamed, continue in {' or '.join(near)}: "
        "move what you still need there, and delete this one.",
    )


def _in_package(path: str) -> str:
    """Return the path below the package's folder; empty for a file outside ``src``."""
    parts = path.split("/", 2)
    return parts[2] if len(parts) == 3 and parts[0] == "src" else ""


def _located(finding: Finding, decision: Decision) -> Finding:
    path, hint = decision.path, finding.hint.replace("PATH", decision.path)
    location = Location(path, decision.conflicts[0], 1) if decision.conflicts else Location(path)
    return finding._replace(location=location, hint=hint)


def diff_contents(path: str, before: bytes | None, after: bytes | None) -> str:
    """Return a unified diff between two contents, or an empty string if they are equal.

    For binary contents, return a line saying that they differ.  ``before`` or ``after`` is None if
    the file does not exist.
    """
    if before == after:
        return ""
    if any(content is not None and b"\0" in content for content in (before, after)):
        return f"Binary files a/{path} and b/{path} differ\n"
    lines = difflib.unified_diff(
        _diff_lines(before),
        _diff_lines(after),
        f"a/{path}" if before is not None else "/dev/null",
        f"b/{path}" if after is not None else "/dev/null",
        lineterm="\n",
    )
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def _diff_lines(content: bytes | None) -> list[str]:
    text = (content or b"").decode(errors="backslashreplace")
    parts = text.split("\n")
    return [part + "\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])
