"""What a user sets for a run: variables, and the checks that are selected."""

from __future__ import annotations

from collections.abc import Iterable


def parse_pairs(option: str, texts: Iterable[str]) -> dict[str, str]:
    """Return the values by name of a repeated option; raises ValueError for another form."""
    pairs = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not name or not separator:
            raise ValueError(f"{option} must be NAME=VALUE, not {text}.")
        pairs[name] = value
    return pairs


def parse_ids(texts: Iterable[str]) -> frozenset[str]:
    """Return the names in lists that are separated by commas."""
    return frozenset(part.strip() for text in texts for part in text.split(",") if part.strip())
