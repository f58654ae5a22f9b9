"""Literals that the API server reads when it compiles a rule: patterns, durations, times."""

from __future__ import annotations

import re
from collections.abc import Iterator

from capsmith.cel_text import LITERAL
from capsmith.provider_yaml.cel.problem import RuleProblem
from capsmith.provider_yaml.go_values import is_duration, is_timestamp
from capsmith.provider_yaml.patterns import refusal
from capsmith.yamldoc.quote import shown

_CALL = re.compile(r"(?:(\.\s*matches)|(?<![\w.])(duration|timestamp))\s*\(\s*$")
_END = re.compile(r"\s*\)")


def check_literals(expression: str) -> list[RuleProblem]:
    """Return the literals of which it is clear that no evaluation can succeed with them."""
    return list(_check(expression))


def _check(expression: str) -> Iterator[RuleProblem]:
    for literal in LITERAL.finditer(expression):
        call = _CALL.search(expression, 0, literal.start())
        if call is None or not _END.match(expression, literal.end()):
            continue
        text = _text(literal)
        if text is None:
            continue
        before = expression[: literal.start()]
        place = (before.count("\n") + 1, literal.start() - before.rfind("\n"))
        if call[1] and (why := refusal(text)):
            hint = "Use the syntax of RE2: https://github.com/google/re2/wiki/Syntax."
            yield RuleProblem(
                f"the pattern is not a valid RE2 regular expression: {why}", hint, *place
            )
        if call[2] == "duration" and not is_duration(text):
            yield RuleProblem(f"{shown(text)} is not a duration", "Write it like '1h30m'.", *place)
        if call[2] == "timestamp" and not is_timestamp(text):
            hint = "Write it like '2030-01-01T00:00:00Z'."
            yield RuleProblem(f"{shown(text)} is not a timestamp", hint, *place)


def _text(literal: re.Match[str]) -> str | None:
    """Return the text of a literal; None for comments, bytes and escapes, which are not read."""
    bodies = [literal[name] for name in ("d3", "s3", "d", "s") if literal[name] is not None]
    prefix = (literal["prefix"] or "").lower()
    if not bodies or "b" in prefix or ("\\" in bodies[0] and "r" not in prefix):
        return None
    return str(bodies[0])
