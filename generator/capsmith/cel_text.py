"""The text of a rule: its quoted parts and comments, and whether it reads the old value.

Loads neither the CEL library nor pydantic.
"""

from __future__ import annotations

import re

LITERAL = re.compile(
    r"//[^\n]*|(?P<prefix>[rRbB]{0,2})(?:\"\"\"(?P<d3>(?:\\.|[^\\])*?)\"\"\""
    r"|'''(?P<s3>(?:\\.|[^\\])*?)'''|\"(?P<d>(?:\\.|[^\"\\\n])*)\"|'(?P<s>(?:\\.|[^'\\\n])*)')",
    re.DOTALL,
)
"""A comment, or a quoted text with its prefix and, in one of four groups, its body."""
_OLD_SELF = re.compile(r"(?<![\w.])oldSelf\b")


def strip_literals(expression: str) -> str:
    """Return a CEL expression without comments, and with ``''`` for each quoted text.

    What is left contains names and operators only: a search in it finds no word of a message.
    """
    return LITERAL.sub(lambda match: " " if match[0].startswith("//") else "''", expression)


def is_transition(rule: str) -> bool:
    """Return whether a rule reads ``oldSelf``, the value before the update."""
    return _OLD_SELF.search(strip_literals(rule)) is not None
