"""Checks of validation rules in the Common Expression Language, without evaluating them."""

from __future__ import annotations

import re

from capsmith.provider_yaml.fields import FieldSchema, Validation
from capsmith.yamldoc.place import Place

_LITERAL = re.compile(
    r"[rR]?(\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''"
    r"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*')",
    re.DOTALL,
)
_OLD_SELF = re.compile(r"\boldSelf\b")
_FIELD_PATH = re.compile(r"(\.[A-Za-z_][A-Za-z0-9_]*|\['[^'\n]+'\])+")
_PAIRS = {")": "(", "]": "[", "}": "{"}


def is_transition(rule: str) -> bool:
    """Return whether a rule reads ``oldSelf``, the value before the update."""
    return _OLD_SELF.search(_LITERAL.sub("", rule)) is not None


def check_rules(field: FieldSchema, place: Place) -> None:
    """Check ``immutable`` and ``x-kubernetes-validations`` of a field."""
    if field.immutable:
        _transition(place.at("immutable"))
    rules = field.validations or ()
    for index, rule in enumerate(rules):
        rule_place = place.at("x-kubernetes-validations", index)
        check_rule(rule, rule_place)
        if is_transition(rule.rule):
            _transition(rule_place)
    if (rules or field.immutable) and not place.bounded:
        place.warning(
            "schema-unbounded-rule",
            "a rule inside a list or map without a greatest size may cost more than allowed",
            "Give the lists maxItems and the maps maxProperties, or the API server may refuse it.",
            "x-kubernetes-validations" if rules else "immutable",
        )


def check_rule(rule: Validation, place: Place) -> None:
    """Check one rule; id ``schema-rule``."""
    if why := _unbalanced(_LITERAL.sub("", rule.rule)):
        place.error("schema-rule", f"the rule is no CEL expression: {why}", "Close it.", "rule")
    if "\n" in rule.rule.strip() and not (rule.message or rule.message_expression):
        message = "a rule of several lines needs a message"
        place.error("schema-rule", message, "Add `message:`, which is shown to the user.", "rule")
    if rule.message is not None and "\n" in rule.message.strip():
        place.error("schema-rule", "a message has one line", "Write it on one line.", "message")
    if rule.field_path is not None and not _FIELD_PATH.fullmatch(rule.field_path):
        message = "fieldPath is a path from here, such as `.cidr`"
        place.error("schema-rule", message, "Start it with a dot.", "fieldPath")
    if rule.optional_old_self is not None and not is_transition(rule.rule):
        message = "optionalOldSelf is for rules that read oldSelf"
        place.error("schema-rule", message, "Remove it.", "optionalOldSelf")


def _transition(place: Place) -> None:
    if not place.correlated:
        place.error(
            "schema-transition-in-list",
            "the API server cannot tell old from new items of this list",
            "Put the rule on the list, or make it `x-kubernetes-list-type: map` with keys.",
        )


def _unbalanced(rule: str) -> str:
    if not rule.strip():
        return "it is empty"
    if "'" in rule or '"' in rule:
        return "a quote is not closed"
    opened: list[str] = []
    for character in rule:
        if character in "([{":
            opened.append(character)
        elif character in ")]}" and (not opened or opened.pop() != _PAIRS[character]):
            return f"a {character} closes nothing"
    return f"a {opened[-1]} is not closed" if opened else ""
