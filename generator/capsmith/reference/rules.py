"""Build a page for each rules file, with the same data as ``capsmith explain``."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import yaml

from capsmith.contract.explain import (
    describe_rule,
    format_effect,
    format_origin,
    format_verification,
)
from capsmith.contract.model import EffectClass, Level, Rule
from capsmith.reference.model import (
    Block,
    Code,
    CodeBlock,
    Heading,
    Items,
    Link,
    Paragraph,
    ReferencePage,
    Span,
    Spans,
    Strong,
    Table,
)

_PART = re.compile(r"`([^`]+)`|\b([A-Z]{2,3}-[0-9]{2})\b")


def format_heading(rule: Rule) -> str:
    """Return the heading for a rule's section."""
    return f"{rule.id} {rule.title}"


def link_rule(rule: Rule) -> Link:
    """Return a link to a rule's section. The link's text is the rule id."""
    return Link(rule.id, f"rules/{rule.page}", format_heading(rule))


class Texts:
    """Converts strings to spans in which each contract rule's id is a link."""

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        self._rules = rules

    def spans(self, text: str) -> Spans:
        """Convert a string to spans in which each rule id is a link."""
        return tuple(self._split(text))

    def _split(self, text: str) -> Iterator[Span]:
        end = 0
        for part in _PART.finditer(text):
            rule = self._rules.get(part[2] or "")
            if rule is None and part[1] is None:
                continue
            if part.start() > end:
                yield text[end : part.start()]
            yield link_rule(rule) if rule is not None else Code(part[1])
            end = part.end()
        if end < len(text):
            yield text[end:]


def link_rules(rules: Collection[Rule]) -> Spans:
    """Return links to rules, separated by commas, or a dash if there are none."""
    found: list[Span] = []
    for rule in rules:
        found += [", ", link_rule(rule)] if found else [link_rule(rule)]
    return tuple(found) or ("-",)


def describe_releases(core: Mapping[str, Any]) -> str:
    """Return core releases for a table cell: ``since v1.13``, or ``all`` if unlimited."""
    words = {"since": "since", "deprecated": "deprecated in", "until": "until"}
    found = [f"{words[name]} {core[name]}" for name in words if core.get(name)]
    return ", ".join(found) or "all"


_HEAD = ("Rule", "Statement", "If violated", "Releases of core", "Checked by", "Source")
_LEVELS = {
    Level.MUST: "Rules that must be followed (MUST)",
    Level.SHOULD: "Rules that should be followed (SHOULD)",
    Level.MAY: "Optional behavior (MAY)",
    Level.INFO: "Behavior of Cluster API and good practice (INFO)",
}
_RELEASE = re.compile(r"https://release-(\d+)-(\d+)\.")
_PROOFS = {"behaviour": "test of the controller", "runtime": "running cluster"}


def build_rule_pages(rules: Mapping[str, Rule]) -> Iterator[ReferencePage]:
    """Yield a page for each rules file."""
    texts = Texts(rules)
    by_page = sorted(rules.values(), key=lambda rule: rule.page)
    for name, group in groupby(by_page, key=lambda rule: rule.page):
        of_page = list(group)
        blocks: list[Block] = [Paragraph((Link("Contents", "index"), f": {len(of_page)} rules."))]
        for rule in of_page:
            blocks += _section(rule, texts)
        yield ReferencePage(f"rules/{name}", f"Rules: {name}", tuple(blocks))


def _section(rule: Rule, texts: Texts) -> Iterator[Block]:
    data = describe_rule(rule)
    yield Heading(2, format_heading(rule))
    binding: Spans = (Strong(data["level"]), f" in contract {', '.join(data['contracts'])}. ")
    yield Paragraph((*binding, *texts.spans(format_origin(data))))
    yield Paragraph(texts.spans(data["statement"]))
    facts: list[Spans] = [("Applies to: ", ", ".join(data["applies_to"]))]
    if data["condition"]:
        facts.append(("Binds when: ", *texts.spans(data["condition"])))
    facts.append(("If violated: ", *texts.spans(data["consequence"])))
    facts.append(("What to do: ", *texts.spans(data["hint"])))
    if format_verification(data):
        facts.append(texts.spans(format_verification(data)))
    facts.append(("Source: ", Link(name_source(data["source"]), url=data["source"])))
    facts.append(("In a terminal: ", Code(f"capsmith explain {rule.id}")))
    yield Items(tuple(facts))
    if data["checked"]["by"] == "static" and data["checked"]["with"]:
        yield CodeBlock(yaml.safe_dump(data["checked"]["with"], sort_keys=False, width=100))


def build_level_blocks(
    rules: Iterable[Rule], roles: Sequence[str], texts: Texts, what: str
) -> Iterator[Block]:
    """Yield a heading and a table for each level. Each table's caption ends with ``what``."""
    by_level: dict[Level, list[Rule]] = {}
    for rule in rules:
        by_level.setdefault(rule.level, []).append(rule)
    for level, title in _LEVELS.items():
        if level in by_level:
            yield Heading(3, title)
            rows = tuple(_row(rule, roles, texts) for rule in by_level[level])
            yield Table(f"{level.value} rules for {what}", _HEAD, rows)


def _row(rule: Rule, roles: Sequence[str], texts: Texts) -> tuple[Spans, ...]:
    data = describe_rule(rule)
    statement = texts.spans(data["statement"])
    if data["condition"]:
        statement = (*statement, " Binds when ", *texts.spans(data["condition"]), ".")
    checked = data["checked"]
    by: Span = Code(checked["check"]) if rule.check else _PROOFS.get(checked["by"], "-")
    return (
        (link_rule(rule), f" {rule.title}"),
        statement,
        (*_class(rule, roles), *texts.spans(data["consequence"])),
        (describe_releases(data["core"]),),
        (by,),
        (f"{rule.origin.value}: ", Link(name_source(data["source"]), url=data["source"])),
    )


def _class(rule: Rule, roles: Sequence[str]) -> Spans:
    """Return the effect of a violation for these roles; empty if there is no static check."""
    effect = describe_rule(rule)["effect"]
    if not effect:
        return ()
    if effect["roles"] and not set(roles) & set(effect["roles"]):
        return (Strong(EffectClass.ADVICE.value), ". ")
    shown = {**effect, "roles": []} if set(roles) <= set(effect["roles"]) else effect
    return (Strong(format_effect(shown)), ". ")


def name_source(url: str) -> str:
    """Return a short name for a URL: the end of its path and, if known, the release of the book."""
    address, _, fragment = url.partition("#")
    name = address.rstrip("/").rpartition("/")[2]
    name = f"{name}#{fragment}" if fragment else name
    release = _RELEASE.match(url)
    return f"{name} (v{release[1]}.{release[2]})" if release else name
