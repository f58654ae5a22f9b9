"""Select the violations to report, using filters, accepted violations and a baseline."""

from __future__ import annotations

import fnmatch
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import PurePosixPath

from capsmith.contract.model import Contract, EffectClass, Keyword, Rule
from capsmith.judge.release.judge import judge, list_not_judged, list_rules
from capsmith.judge.release.migration import list_remaining, plan_migration
from capsmith.judge.release.model import Ignored, ReleaseViolation, Verdict, VerifyOptions
from capsmith.judge.release.release import ReleaseFiles, is_components_file, read_lines
from capsmith.judge.release.targets import parse_core
from capsmith.judge.release.upgrade import judge_upgrade

_COMMENT = re.compile(r"#\s*capsmith:ignore\s+([A-Za-z0-9, -]+?)\s*:\s*\S")
"""A comment such as ``# capsmith:ignore CC-27: the reason``; without a reason it is ignored."""


def verify(
    release: ReleaseFiles,
    contracts: Mapping[str, Contract],
    options: VerifyOptions,
    baseline: Mapping[str, int] | None = None,
    more: Iterable[ReleaseViolation] = (),
) -> Verdict:
    """Check a release and return the verdict.

    ``baseline`` holds the accepted number of occurrences of each violation, by fingerprint.
    ``more`` holds violations that were not found in files, such as those from a running API server.
    """
    judged = sorted((*judge(release, contracts, options), *more), key=lambda each: each.sort_key)
    verdict = _verdict(judged, release, options, baseline, list_rules(contracts, options))
    return replace(
        verdict, not_judged=list_not_judged(release, options), releases=_list_releases(release)
    )


def verify_upgrade(
    before: ReleaseFiles,
    after: ReleaseFiles,
    rules: Mapping[str, Rule],
    keywords: Mapping[str, Keyword],
    options: VerifyOptions,
    baseline: Mapping[str, int] | None = None,
) -> Verdict:
    """Check the upgrade from the installed release ``before`` to ``after``, and return the verdict.

    ``baseline`` holds the accepted number of occurrences of each violation, by fingerprint.
    """
    violations = judge_upgrade(before, after, rules, keywords, options)
    both = ReleaseFiles(
        texts={**before.texts, **after.texts}, left_out=(*before.left_out, *after.left_out)
    )
    return _verdict(violations, both, options, baseline, rules)


def verify_migration(
    release: ReleaseFiles,
    contracts: Mapping[str, Contract],
    old: str,
    options: VerifyOptions,
    baseline: Mapping[str, int] | None = None,
) -> Verdict:
    """Return a verdict whose violations are the remaining steps from contract version ``old``.

    ``baseline`` holds the accepted number of occurrences of each violation, by fingerprint. Raises
    LookupError if no contract version follows.
    """
    migration = plan_migration(release, contracts, old, options)
    rules = contracts[migration.new].rules
    remaining = list_remaining(migration, rules)
    used = {id for step in migration.steps for id in step.rules if id in rules}
    core = parse_core(migration.end.core)
    assert core is not None
    verdict = _verdict(
        remaining,
        release,
        replace(options, cores=(core,)),
        baseline,
        {id: rules[id] for id in sorted(used)},
    )
    return replace(verdict, migration=migration, releases=_list_releases(release))


def _list_releases(release: ReleaseFiles) -> tuple[str, ...]:
    """Return the sorted folders that have a components file."""
    # Files without objects count as well, because a release that cannot be read was judged too.
    files = (name for name in release.texts if is_components_file(name))
    return tuple(sorted({str(PurePosixPath(file).parent) for file in files}))


def _verdict(
    judged: Iterable[ReleaseViolation],
    release: ReleaseFiles,
    options: VerifyOptions,
    baseline: Mapping[str, int] | None,
    rules: Mapping[str, Rule],
) -> Verdict:
    judged = tuple(judged)
    violations = [each for each in judged if _is_selected(each.id, options)]
    kept: list[ReleaseViolation] = []
    left = Counter(dict(baseline or {}))
    suppressed = 0
    for violation in violations:
        key = compute_fingerprint(violation)
        is_accepted = any(_fits(violation, entry) for entry in options.ignored)
        if is_accepted or _is_commented(violation, release):
            suppressed += 1
        # The baseline counts occurrences: one more violation with the same text is new.
        elif left[key] > 0:
            left[key] -= 1
            suppressed += 1
        else:
            kept.append(violation)
    shown = [v for v in kept if options.advice or v.effect is not EffectClass.ADVICE]
    return Verdict(
        violations=tuple(shown),
        files=len(release.texts),
        cores=options.cores,
        hidden_advice=len(kept) - len(shown),
        suppressed=suppressed,
        texts={name: text.original for name, text in release.texts.items()},
        rules={id: rule for id, rule in rules.items() if _is_selected(id, options)},
        violated=frozenset(violation.id for violation in judged),
        left_out=release.left_out,
    )


def compute_fingerprint(violation: ReleaseViolation) -> str:
    """Return an id for a violation that stays the same when line numbers change.

    It consists of the rule, the object and the message.
    """
    return f"{violation.id} {violation.subject}: {violation.message}"


def _is_selected(id: str, options: VerifyOptions) -> bool:
    names = {id, id.partition("-")[0]}
    return not names & options.ignore and (not options.select or bool(names & options.select))


def _fits(violation: ReleaseViolation, entry: Ignored) -> bool:
    file = violation.location.file.replace("\\", "/")
    name = violation.subject.partition(" ")[2]
    return (
        entry.rule == violation.id
        and any(fnmatch.fnmatchcase(each, entry.file) for each in (file, file.rpartition("/")[2]))
        and any(fnmatch.fnmatchcase(each, entry.object) for each in (name, violation.subject))
    )


def _is_commented(violation: ReleaseViolation, release: ReleaseFiles) -> bool:
    """Return whether a comment at the violation or at the start of its object accepts it."""
    places = (violation.location, replace(violation.location, line=violation.begins, column=1))
    return any(
        violation.id in re.split(r"[,\s]+", match[1])
        for place in places
        for line in read_lines(release.texts, place)
        for match in _COMMENT.finditer(line)
    )
