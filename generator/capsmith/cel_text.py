"""Analyse the source of CEL rules: strip literals and comments, and find transition rules.

Loads neither the CEL library nor pydantic.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# Triple quotes precede single quotes, and comments precede both: a quote in a comment does not open
# a string, and two slashes in a string do not start a comment.
LITERAL = re.compile(
    r"//[^\n]*|(?P<prefix>[rRbB]{0,2})(?:\"\"\"(?P<d3>(?:\\.|[^\\])*?)\"\"\""
    r"|'''(?P<s3>(?:\\.|[^\\])*?)'''|\"(?P<d>(?:\\.|[^\"\\\n])*)\"|'(?P<s>(?:\\.|[^'\\\n])*)')",
    re.DOTALL,
)
"""Regular expression for a CEL comment, or for a string literal with its prefix.

At most one of the groups ``d3``, ``s3``, ``d`` and ``s`` matches: the content of the string.
"""
PATCH_VALUE = "capsmithPatch"
"""Name of a variable that has the type of a JSONPatch, for expressions of admission policies."""
# Matches neither a field of that name (`self.oldSelf`) nor a part of a longer name.
_OLD_SELF = re.compile(r"(?<![\w.])oldSelf\b")
# A new object has no old value; these are the usual ways to accept it.
_ACCEPTS_NEW = re.compile(
    r"!\s*oldSelf\.hasValue\(\)|\boldSelf\.orValue\(\s*self\s*\)|\.orValue\(\s*true\s*\)|:\s*true\b"
)


def strip_literals(expression: str) -> str:
    """Return a CEL expression without comments, and with ``''`` in place of each string literal.

    Only names and operators are left, so that a search does not match words inside strings.
    """
    return LITERAL.sub(lambda match: " " if match[0].startswith("//") else "''", expression)


def is_transition(rule: str) -> bool:
    """Return whether a rule reads ``oldSelf``, the value before the update."""
    return _OLD_SELF.search(strip_literals(rule)) is not None


def normalize_rule(rule: str) -> str:
    """Return a rule without comments and without white space that has no meaning."""
    parts: list[str] = []
    end = 0
    for match in LITERAL.finditer(rule):
        parts += [_squeeze(rule[end : match.start()])]
        parts += [" " if match[0].startswith("//") else match[0]]
        end = match.end()
    return "".join((*parts, _squeeze(rule[end:]))).strip()


def refuses_values(rule: str, *, is_optional: bool) -> bool:
    """Return whether a rule may refuse values whatever their former values were.

    ``is_optional`` is the rule's ``optionalOldSelf``: the rule then also applies to new objects.
    """
    text = strip_literals(rule)
    if not is_transition(rule):
        return True
    if is_optional and not _ACCEPTS_NEW.search(text):
        return True
    # A part without oldSelf refuses a stored value even if a write does not change it.
    parts = _split_conjunction(text)
    return len(parts) > 1 and not all(_OLD_SELF.search(part) for part in parts)


def _split_conjunction(text: str) -> list[str]:
    """Split an expression without literals at ``&&`` outside of parentheses.

    An expression with an alternative or a condition at its top is returned as a whole.
    """
    parts, depth, start = [], 0, 0
    for match in re.finditer(r"[(\[{]|[)\]}]|&&|\|\||\?(?![.\[])", text):
        if match[0] in "([{":
            depth += 1
        elif match[0] in ")]}":
            depth -= 1
        elif depth == 0 and match[0] == "&&":
            parts.append(text[start : match.start()])
            start = match.end()
        elif depth == 0:
            return [text]
    return [*parts, text[start:]]


def _squeeze(code: str) -> str:
    """Return code without literals whose white space only separates words."""
    return re.sub(r" ?([^\w\s]) ?", r"\1", re.sub(r"\s+", " ", code))


def remove_transition_rules(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a schema without the CEL rules, at any depth, that read ``oldSelf``."""
    kept = dict(schema)
    rules = [
        rule
        for rule in kept.pop("x-kubernetes-validations", ())
        if not is_transition(str(rule["rule"]))
    ]
    if rules:
        kept["x-kubernetes-validations"] = rules
    if "properties" in kept:
        kept["properties"] = {
            name: remove_transition_rules(below) for name, below in kept["properties"].items()
        }
    for part in ("items", "additionalProperties"):
        if isinstance(kept.get(part), Mapping):
            kept[part] = remove_transition_rules(kept[part])
    return kept
