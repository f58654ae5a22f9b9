"""Format a verdict as text, JSON, SARIF or JUnit. Pure functions from data to strings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from capsmith.contract.model import EffectClass
from capsmith.formats import format_json, format_junit, make_sarif_log
from capsmith.judge.release.model import Migration, ReleaseViolation, StepState, Verdict
from capsmith.judge.release.targets import format_source_note, format_span
from capsmith.yamldoc.compose import format_path

_TITLES = {
    EffectClass.BREAKS: "breaks",
    EffectClass.BREAKS_WHEN: "breaks when",
    EffectClass.ADVICE: "advice",
}


def render_lines(violation: ReleaseViolation) -> Iterator[str]:
    """Yield the lines of text output for a violation."""
    effect = violation.effect
    head = f"{violation.location}: {_TITLES[effect]} {violation.id}: {violation.message}"
    yield head
    if violation.path:
        yield f"    at: {violation.dotted}"
    cores = f" (core {format_span(violation.cores)})" if violation.cores else ""
    if violation.consequence and effect is not EffectClass.ADVICE:
        yield f"    what happens: {violation.consequence}{cores}"
    if violation.when:
        yield f"    when: {violation.when}"
    if violation.hint:
        yield f"    hint: {violation.hint}"
    if violation.link:
        yield f"    see: {violation.link}"


def render_migration(migration: Migration) -> Iterator[str]:
    """Yield a line for each kind with the number of its completed steps.

    Steps whose state cannot be seen in manifests get a line each.  Other open steps are violations.
    """
    kinds = dict.fromkeys(step.kind for step in migration.steps)
    for kind in kinds:
        steps = [step for step in migration.steps if step.kind == kind]
        done = sum(1 for step in steps if step.state is StepState.DONE)
        yield f"{kind}: {done} of {len(steps)} steps done"
        for step in steps:
            if step.state is StepState.UNSEEN:
                yield f"    not visible in manifests: {step.action}"


def render_summary(verdict: Verdict) -> str:
    """Return the last line of the text output: counts, files, and releases of core."""
    if verdict.migration is not None:
        return _render_steps(verdict, verdict.migration)
    parts = [
        f"{verdict.count(EffectClass.BREAKS)} break",
        f"{verdict.count(EffectClass.BREAKS_WHEN)} break under a condition",
    ]
    advice = verdict.count(EffectClass.ADVICE)
    if advice:
        parts.append(f"{advice} advice")
    if verdict.hidden_advice:
        parts.append(f"{verdict.hidden_advice} advice hidden (--advice)")
    if verdict.suppressed:
        parts.append(f"{verdict.suppressed} suppressed")
    files = "1 file" if verdict.files == 1 else f"{verdict.files} files"
    cores = f"{format_span(verdict.cores)}{format_source_note(verdict.from_source)}"
    return f"capsmith verify: {', '.join(parts)}; {files}, core {cores}."


def _render_steps(verdict: Verdict, migration: Migration) -> str:
    left, steps = verdict.count(EffectClass.BREAKS), len(migration.steps)
    parts = [f"{left} of {steps} steps left" if left else f"no step of {steps} left"]
    for state, words in (
        (StepState.OPTIONAL, "optional"),
        (StepState.UNSEEN, "not visible in manifests"),
    ):
        count = migration.count(state)
        parts += [f"{count} {words}"] if count else []
    if verdict.suppressed:
        parts.append(f"{verdict.suppressed} suppressed")
    files = "1 file" if verdict.files == 1 else f"{verdict.files} files"
    return (
        f"capsmith verify: from contract {migration.old} to {migration.new}: {', '.join(parts)};"
        f" {files}; support ends with core {migration.end}."
    )


def make_data(verdict: Verdict) -> dict[str, Any]:
    """Return the verdict as plain data for ``--format json``."""
    return {
        "exitCode": verdict.exit_code,
        "core": [str(core) for core in verdict.cores],
        "coreFromSource": [str(core) for core in verdict.from_source],
        "summary": {
            **{effect.value: verdict.count(effect) for effect in EffectClass},
            "hiddenAdvice": verdict.hidden_advice,
            "suppressed": verdict.suppressed,
            "files": verdict.files,
        },
        "unanswered": list(verdict.unanswered),
        "notJudged": list(verdict.not_judged),
        "leftOut": list(verdict.left_out),
        "violations": [_violation(violation) for violation in verdict.violations],
        **({"migration": _migration(verdict.migration)} if verdict.migration is not None else {}),
    }


def _migration(migration: Migration) -> dict[str, Any]:
    return {
        "from": migration.old,
        "to": migration.new,
        "endsWith": migration.end.core,
        "announcedFor": migration.end.date,
        "link": migration.source,
        "summary": {state.value: migration.count(state) for state in StepState},
        "steps": [
            {
                "state": step.state.value,
                "kind": step.kind,
                "action": step.action,
                "note": step.note,
                "rules": list(step.rules),
                "file": step.location.file,
                "line": step.location.line,
                "column": step.location.column,
                "path": format_path(step.path),
            }
            for step in migration.steps
        ],
    }


def _violation(violation: ReleaseViolation) -> dict[str, Any]:
    return {
        "id": violation.id,
        "class": violation.effect.value,
        "message": violation.message,
        "file": violation.location.file,
        "line": violation.location.line,
        "column": violation.location.column,
        "object": violation.subject,
        "path": violation.dotted,
        "consequence": violation.consequence,
        "when": violation.when,
        "core": [str(core) for core in violation.cores],
        "hint": violation.hint,
        "link": violation.link,
    }


def render_sarif(verdict: Verdict, version: str) -> str:
    """Return the verdict as a SARIF 2.1.0 log in JSON.

    The properties of each result hold the effect, the path and the releases of core.
    """
    log = make_sarif_log([violation.finding() for violation in verdict.violations], version)
    for result, violation in zip(log["runs"][0]["results"], verdict.violations, strict=True):
        entry = _violation(violation)
        names = ("class", "object", "path", "consequence", "when", "core")
        result["properties"] = {name: entry[name] for name in names if entry[name]}
    return format_json(log)


def render_junit(verdict: Verdict) -> str:
    """Return a JUnit report in XML. Only violations certain to break something are failures."""
    return format_junit(
        [violation.finding() for violation in verdict.violations], "capsmith verify"
    )
