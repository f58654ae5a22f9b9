"""One rules file (a page of the contract) -> :class:`Rule` values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from capsmith.contract.model import Check, Level, Proof, Rule, Weight
from capsmith.contract.reading import Entry

_ID = re.compile(r"[A-Z]{2,3}-[0-9]{2}")


def read_rules(data: Any, page: str, allowed: tuple[str, ...], file: str) -> Iterator[Rule]:
    """The rules of one page, which may hold in the contract versions ``allowed``.

    Raises UnreadableInput for anything unexpected.
    """
    top = Entry(data, file)
    base = top.take("source", str)
    entries = top.take("rules", list)
    top.close()
    for number, entry in enumerate(entries, start=1):
        name = entry.get("id") if isinstance(entry, dict) else None
        yield _rule(Entry(entry, file, str(name or f"rule {number}")), page, allowed, base)


def _rule(entry: Entry, page: str, allowed: tuple[str, ...], base: str) -> Rule:
    check = _check(entry)
    rule = Rule(
        id=entry.take("id", str),
        title=entry.take("title", str),
        level=_member(entry, "level", Level),
        statement=entry.take("statement", str),
        contracts=entry.texts("contracts") if entry.has("contracts") else allowed,
        applies_to=entry.texts("applies_to"),
        check=check,
        proof=_member(entry, "proof", Proof) if entry.has("proof") else None,
        source=_source(entry.take("source", str, ""), base),
        consequence=entry.take("consequence", str),
        hint=entry.take("hint", str),
        page=page,
        condition=entry.take("condition", str, ""),
        severity=_member(entry, "severity", Weight) if entry.has("severity") else None,
    )
    entry.close()
    _coherent(entry, rule, allowed)
    return rule


def _check(entry: Entry) -> Check | None:
    if entry.null("check"):
        return None
    part = Entry(entry.take("check", dict), entry.file, f"check of {entry.name}")
    check = Check(part.take("name", str), part.take("with", dict, {}))
    part.close()
    return check


def _coherent(entry: Entry, rule: Rule, allowed: tuple[str, ...]) -> None:
    if not _ID.fullmatch(rule.id):
        raise entry.error("has an id of another form than AB-01")
    if not set(rule.contracts) <= set(allowed) or not rule.contracts:
        raise entry.error(f"stands in a folder for {', '.join(allowed)}")
    if rule.check is not None and rule.proof is not None:
        raise entry.error("has both a check and a proof")
    if rule.check is None and rule.proof is None and rule.level is not Level.INFO:
        raise entry.error("has neither a check nor a proof")


def _source(own: str, base: str) -> str:
    """A rule's source: an anchor on the page's, or an address of its own."""
    return own if own.startswith("https://") else base + own


def _member(entry: Entry, key: str, kind: type[Any]) -> Any:
    text = entry.take(key, str)
    try:
        return kind(text)
    except ValueError:
        raise entry.error(f"has {text!r} for {key!r}") from None
