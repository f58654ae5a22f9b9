"""Parse one rules file (a page of the contract) into :class:`Rule` values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from capsmith.contract.files import RuleEntry, RulesFile
from capsmith.contract.model import Check, Level, Rule
from capsmith.contract.reading import broken, validate

_ID = re.compile(r"[A-Z]{2,3}-[0-9]{2}")


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
        statement=entry.statement,
        contracts=allowed if entry.contracts is None else tuple(entry.contracts),
        applies_to=tuple(entry.applies_to),
        check=Check(entry.check.name, entry.check.params) if entry.check else None,
        proof=entry.proof,
        source=_source(entry.source, base),
        consequence=entry.consequence,
        hint=entry.hint,
        page=page,
        condition=entry.condition,
        severity=entry.severity,
    )


def _require_coherence(rule: Rule, allowed: tuple[str, ...], file: str) -> None:
    if not _ID.fullmatch(rule.id):
        raise broken(file, f"{rule.id!r} is an id of another form than AB-01")
    if not set(rule.contracts) <= set(allowed) or not rule.contracts:
        raise broken(file, f"{rule.id} is in a folder for {', '.join(allowed)}")
    if rule.check is not None and rule.proof is not None:
        raise broken(file, f"{rule.id} has both a check and a proof")
    if rule.check is None and rule.proof is None and rule.level is not Level.INFO:
        raise broken(file, f"{rule.id} has neither a check nor a proof")


def _source(own: str, base: str) -> str:
    """Return a rule's source: an anchor on the page's, or an address of its own."""
    return own if own.startswith("https://") else base + own
