"""Parse one rules file (a page of the contract) into :class:`Rule` values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from capsmith.contract.files import EffectEntry, RuleEntry, RulesFile
from capsmith.contract.model import Check, Effect, Releases, Rule
from capsmith.contract.reading import broken, validate
from capsmith.contract.terms import EffectClass, Level, Origin

_ID = re.compile(r"[A-Z]{2,3}-[0-9]{2}")

_CONTRACT_PAGE = re.compile(
    r"https://([a-z0-9-]+\.)?cluster-api\.sigs\.k8s\.io/"
    r"(developer/providers/contracts/|tasks/experimental-features/runtime-sdk/(implement|deploy)-)"
)


def read_rules(data: Any, page: str, allowed: tuple[str, ...], file: str) -> Iterator[Rule]:
    """Yield the rules of one page, which may hold in the contract versions ``allowed``.

    Raises UnreadableInput for anything unexpected.
    """
    content = validate(RulesFile, data, file)
    for entry in content.rules:
        rule = _rule(entry, page, allowed, content.source)
        _require_coherence(rule, allowed, file)
        yield rule


def _rule(entry: RuleEntry, page: str, allowed: tuple[str, ...], base: str) -> Rule:
    return Rule(
        id=entry.id,
        title=entry.title,
        level=entry.level,
        origin=entry.origin,
        statement=entry.statement,
        contracts=allowed if entry.contracts is None else tuple(entry.contracts),
        applies_to=tuple(entry.applies_to),
        check=Check(entry.check.name, entry.check.params) if entry.check else None,
        proof=entry.proof,
        source=_source(entry.source, base),
        consequence=entry.consequence,
        hint=entry.hint,
        page=page,
        row=entry.row,
        condition=entry.condition,
        core=Releases(entry.core.since, entry.core.deprecated, entry.core.until),
        severity=entry.severity,
        effect=_effect(entry.effect),
    )


def _effect(entry: EffectEntry | None) -> Effect:
    if entry is None:
        return Effect(EffectClass.ADVICE)
    return Effect(entry.class_, entry.when, tuple(entry.roles))


def _require_coherence(rule: Rule, allowed: tuple[str, ...], file: str) -> None:
    if not _ID.fullmatch(rule.id):
        raise broken(file, f"{rule.id!r} is not an id such as AB-01")
    if not set(rule.contracts) <= set(allowed) or not rule.contracts:
        raise broken(file, f"{rule.id} is in a folder for {', '.join(allowed)}")
    if rule.check is not None and rule.proof is not None:
        raise broken(file, f"{rule.id} has both a check and a proof")
    if bool(rule.effect.when) != (rule.effect.kind is EffectClass.BREAKS_WHEN):
        raise broken(file, f"{rule.id} has a condition without the class breaks-when, or none")
    if not set(rule.effect.roles) <= set(rule.applies_to):
        raise broken(file, f"{rule.id} has an effect on roles that it does not apply to")
    if rule.check is None and rule.proof is None and rule.level is not Level.INFO:
        raise broken(file, f"{rule.id} has neither a check nor a proof")
    if (rule.origin is Origin.CONTRACT) != (_CONTRACT_PAGE.match(rule.source) is not None):
        raise broken(file, f"{rule.id} has origin {rule.origin}, unlike its source {rule.source}")


def _source(own: str, base: str) -> str:
    """Return a rule's source: an anchor on the page's, or an address of its own."""
    return own if own.startswith("https://") else base + own
