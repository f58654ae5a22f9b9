"""Which values of an object come from variables of clusterctl that have no default."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from capsmith.manifests.parse import Manifest, parse_manifests
from capsmith.yamldoc.compose import Path

SAMPLE = "capsmith-sample"
"""The value of a variable whose value is not known; what contains it fits every schema."""
_KEPT = 4


def has_variable(text: str) -> bool:
    """Return whether a text depends on a value that is not known."""
    return SAMPLE in text or "${" in text


def may_vary(manifest: Manifest, path: Path, is_deep: bool = False) -> bool:
    """Return whether a user may change the value at ``path``, or the entries of a list or map.

    ``is_deep``: or what is at any depth below.

    The value of a judged object may be a sample that looks like any other value, so this looks at
    the original text, whose variables without a default stay.  Where that is no YAML, a variable
    may be anything.
    """
    if "$" not in manifest.text:
        return False
    found = [
        each
        for each in _originals(manifest.text)
        if each.line == manifest.line and each.kind == manifest.kind
    ]
    return len(found) != 1 or _varies(_value(found[0].document, path), is_deep)


def _varies(value: Any, is_deep: bool) -> bool:
    entries: Iterable[Any] = value if isinstance(value, list | dict) else [value]
    if any(isinstance(each, str) and has_variable(each) for each in entries):
        return True
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return is_deep and any(_varies(each, is_deep) for each in below)


def _value(document: Any, path: Path) -> Any:
    """Return the value at ``path``, or the last text on the way to it, or None."""
    for step in path:
        if isinstance(document, dict):
            document = document.get(step)
        elif isinstance(document, list) and isinstance(step, int) and step < len(document):
            document = document[step]
        else:
            return document if isinstance(document, str) else None
    return document


@lru_cache(_KEPT)
def _originals(text: str) -> tuple[Manifest, ...]:
    manifests, wrong = parse_manifests(text, "")
    return () if wrong else manifests
