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
# Matches neither a field of that name (`self.oldSelf`) nor a part of a longer name.
_OLD_SELF = re.compile(r"(?<![\w.])oldSelf\b")


def strip_literals(expression: str) -> str:
    """Return a CEL expression without comments, and with ``''`` in place of each string literal.

    Only names and operators are left, so that a search does not match words inside strings.
    """
    return LITERAL.sub(lambda match: " " if match[0].startswith("//") else "''", expression)


def is_transition(rule: str) -> bool:
    """Return whether a rule reads ``oldSelf``, the value before the update."""
    return _OLD_SELF.search(strip_literals(rule)) is not None


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
