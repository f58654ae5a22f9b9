"""Texts of rules as spans: names in backticks are code, and ids of rules are links."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from capsmith.contract.model import Rule
from capsmith.reference.model import Code, Link, Span, Spans

_PART = re.compile(r"`([^`]+)`|\b([A-Z]{2,3}-[0-9]{2})\b")


def heading(rule: Rule) -> str:
    """Return the heading of a rule's section."""
    return f"{rule.id} {rule.title}"


def rule_link(rule: Rule) -> Link:
    """Return a link to the section on a rule, with its id."""
    return Link(rule.id, f"rules/{rule.page}", heading(rule))


class Texts:
    """Convert texts that name rules."""

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        self._rules = rules

    def spans(self, text: str) -> Spans:
        """Return a text as spans."""
        return tuple(self._split(text))

    def _split(self, text: str) -> Iterator[Span]:
        end = 0
        for part in _PART.finditer(text):
            rule = self._rules.get(part[2] or "")
            if rule is None and part[1] is None:
                continue
            if part.start() > end:
                yield text[end : part.start()]
            yield rule_link(rule) if rule is not None else Code(part[1])
            end = part.end()
        if end < len(text):
            yield text[end:]


def links(rules: Collection[Rule]) -> Spans:
    """Return the ids of rules as links; a dash if there are none."""
    found: list[Span] = []
    for rule in rules:
        found += [", ", rule_link(rule)] if found else [rule_link(rule)]
    return tuple(found) or ("-",)


def releases(core: Mapping[str, Any]) -> str:
    """Return releases of core for a cell: ``since v1.13``; ``all`` without bounds."""
    words = {"since": "since", "deprecated": "deprecated in", "until": "until"}
    found = [f"{words[name]} {core[name]}" for name in words if core.get(name)]
    return ", ".join(found) or "all"
