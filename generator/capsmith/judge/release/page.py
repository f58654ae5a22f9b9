"""Make a report page for a verdict: findings grouped by consequence, and rules without
violations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from capsmith import __version__
from capsmith.contract.model import EffectClass
from capsmith.judge.release.model import ReleaseViolation, Verdict
from capsmith.judge.release.targets import format_span
from capsmith.report_pages.findings import relocate, relocate_path
from capsmith.report_pages.model import Entry, Fact, Group, ReportPage, Section, make_excerpt

_TITLES = {
    EffectClass.BREAKS: "Breaks",
    EffectClass.BREAKS_WHEN: "Breaks under a condition",
    EffectClass.ADVICE: "Advice",
}


class Judged(NamedTuple):
    """The files and folders that a user named."""

    paths: tuple[str, ...]
    installed: str = ""
    """The release that the other one replaces; empty for no upgrade."""


def make_page(verdict: Verdict, judged: Judged, command: str, folder: str) -> ReportPage:
    """Return the verdict as a report page.

    ``command`` is the command line that repeats the run.  File names are made relative to
    ``folder``, the current folder, so that the page contains no absolute paths.
    """
    return ReportPage(
        title="capsmith verify",
        verdict=_describe(verdict),
        has_failed=bool(verdict.exit_code),
        facts=(*_list_judged(judged, folder), *_facts(verdict)),
        command=command,
        sections=tuple(_sections(verdict, folder)),
        releases=tuple(map(str, verdict.cores)),
        folders=tuple(
            (relocate_path(each, folder), _describe(_select(verdict, each)))
            for each in verdict.releases
            if len(verdict.releases) > 1
        ),
        notes=(
            *(f"Not judged: {text}" for text in verdict.not_judged),
            *(f"Left out: {text}" for text in verdict.left_out),
            *(f"Not answered: {text}" for text in verdict.unanswered),
        ),
        held_title="Rules that found no violation",
        held_note="A rule about kinds that the release lacks has nothing to find.",
        held=tuple(
            Fact(id, rule.statement)
            for id, rule in sorted(verdict.rules.items())
            if id not in verdict.violated and not verdict.not_judged
        ),
    )


def _describe(verdict: Verdict) -> str:
    """Return the verdict in one sentence."""
    broken = {v.cores for v in verdict.violations if v.effect is EffectClass.BREAKS}
    cores = sorted({core for each in broken for core in each or verdict.cores})
    conditional = verdict.count(EffectClass.BREAKS_WHEN)
    if broken:
        count = verdict.count(EffectClass.BREAKS)
        places = "1 place breaks" if count == 1 else f"{count} places break"
        names = ", ".join(map(str, cores))
        return f"{places} with core {names}." if names else f"{places}."
    span = f" with core {format_span(verdict.cores)}" if verdict.cores else ""
    if conditional:
        places = "1 place breaks" if conditional == 1 else f"{conditional} places break"
        return f"Nothing is certain to break{span}; {places} under a condition."
    return f"Nothing breaks{span}."


def _select(verdict: Verdict, release: str) -> Verdict:
    """Return the verdict on one of the releases."""
    found = (v for v in verdict.violations if verdict.find_release(v.location.file) == release)
    return replace(verdict, violations=tuple(found))


def _find_folder(verdict: Verdict, violation: ReleaseViolation, folder: str) -> str:
    """Return the release with the violation, for display; empty if only one was judged."""
    found = verdict.find_release(violation.location.file) if len(verdict.releases) > 1 else ""
    return relocate_path(found, folder) if found else ""


def _list_judged(judged: Judged, folder: str) -> Iterator[Fact]:
    paths = ", ".join(relocate_path(each, folder) for each in judged.paths)
    if judged.installed:
        yield Fact("Installed release", relocate_path(judged.installed, folder))
        yield Fact("Replaced by", paths)
    else:
        yield Fact("Judged", paths)


def _facts(verdict: Verdict) -> Iterator[Fact]:
    yield Fact("Judged by", f"capsmith {__version__}")
    yield Fact("Files", str(verdict.files))
    yield Fact("Releases of core", ", ".join(map(str, verdict.cores)))
    if verdict.from_source:
        yield Fact("As read from source", ", ".join(map(str, verdict.from_source)))
    if verdict.hidden_advice:
        yield Fact("Advice hidden", str(verdict.hidden_advice))
    if verdict.suppressed:
        yield Fact("Accepted violations", str(verdict.suppressed))


def _sections(verdict: Verdict, folder: str) -> Iterator[Section]:
    for effect, title in _TITLES.items():
        groups: dict[str, list[Entry]] = {}
        for violation in verdict.violations:
            if violation.effect is effect:
                entry = _entry(verdict, violation, folder)
                groups.setdefault(violation.consequence, []).append(entry)
        if groups:
            yield Section(title, tuple(Group(each, tuple(found)) for each, found in groups.items()))


def _entry(verdict: Verdict, violation: ReleaseViolation, folder: str) -> Entry:
    rule = verdict.rules.get(violation.id)
    text = verdict.texts.get(violation.location.file)
    return Entry(
        id=violation.id,
        message=violation.message,
        location=relocate(violation.location, folder),
        subject=violation.subject,
        path=violation.dotted,
        rule=rule.statement if rule is not None else "",
        when=violation.when,
        releases=tuple(map(str, violation.cores)),
        hint=violation.hint,
        link=violation.link,
        excerpt=make_excerpt(text, violation.location.line) if text is not None else None,
        folder=_find_folder(verdict, violation, folder),
    )
