"""Check answers before they become a provider.yaml, whose errors name lines that no user wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from capsmith.findings import Finding, Location

MAX_CHARACTERS: Final = 500
"""Longer than the address of a repository; YAML has keys of up to 1,024 characters."""
_HINT: Final = "Answer with at most {limit} printable characters, without control characters."


def check_answers(answers: Mapping[str, str | bool]) -> tuple[Finding, ...]:
    """Return a finding for each answer that no provider.yaml can hold, by question.

    Id of the findings: ``answer-unusable``.
    """
    return tuple(
        Finding("answer-unusable", problem, Location(key), hint=_HINT.format(limit=MAX_CHARACTERS))
        for key, answer in answers.items()
        if isinstance(answer, str)
        for problem in _problems(answer)
    )


def _problems(answer: str) -> Iterator[str]:
    if len(answer) > MAX_CHARACTERS:
        yield f"the answer has {len(answer):,} characters"
    elif not answer.isprintable():
        character = next(each for each in answer if not each.isprintable())
        yield f"the answer contains the character U+{ord(character):04X}"
