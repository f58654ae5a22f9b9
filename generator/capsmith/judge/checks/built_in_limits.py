"""Check LimitRanges for amounts that the API server compares with each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from capsmith.judge.checks.built_in_pods import is_fixed, read_amount
from capsmith.judge.checks.mismatches import Mismatch
from capsmith.manifests.parse import Manifest, mapping_of, text_of

_CONTAINER = "Container"
_ORDERED = (
    ("min", "max"),
    ("min", "defaultRequest"),
    ("defaultRequest", "max"),
    ("defaultRequest", "default"),
    ("min", "default"),
    ("default", "max"),
)
"""Pairs of fields of which the first must not have more of a resource than the second."""
_RATIO = "maxLimitRequestRatio"


def find_limit_faults(manifest: Manifest) -> Iterator[Mismatch]:
    """Yield the amounts of a LimitRange that the API server refuses beside the others."""
    for number, limit in enumerate(manifest.listing("spec", "limits")):
        amounts = _fill_defaults(limit)
        for name in sorted({name for each in amounts.values() for name in each}):
            of_name = {field: each[name] for field, each in amounts.items() if name in each}
            for field, why in _compare(name, of_name):
                yield Mismatch(("spec", "limits", number, field), f"{why} of {name}")


def _fill_defaults(limit: Any) -> dict[str, Mapping[str, Any]]:
    """Return the amounts of each field by resource, with those that the API server adds."""
    fields = {*(field for pair in _ORDERED for field in pair), _RATIO}
    found = {field: mapping_of(limit, field) for field in fields}
    if text_of(limit, "type") == _CONTAINER:
        found["default"] = {**found["max"], **found["default"]}
        found["defaultRequest"] = {**found["min"], **found["default"], **found["defaultRequest"]}
    return found


def _compare(name: str, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the fields with a wrong amount of a resource, and why it is wrong."""
    amounts = {field: read_amount(value) for field, value in values.items()}
    for lower, upper in _ORDERED:
        less, more = amounts.get(lower), amounts.get(upper)
        if less is not None and more is not None and less > more:
            yield lower, f"has {values[lower]}, more than the {values[upper]} of {upper},"
    request, default = amounts.get("defaultRequest"), amounts.get("default")
    if is_fixed(name) and None not in (request, default) and request != default:
        yield "defaultRequest", f"has {values['defaultRequest']}, and default {values['default']},"
    ratio = amounts.get(_RATIO)
    if ratio is not None:
        yield from _compare_ratio(ratio, amounts, values)


def _compare_ratio(
    ratio: Fraction, amounts: Mapping[str, Fraction | None], values: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    if ratio < 1:
        yield _RATIO, f"has {values[_RATIO]}, less than 1,"
    least, most = amounts.get("min"), amounts.get("max")
    if least and most and least > 0 and ratio > most / least:
        yield _RATIO, f"has {values[_RATIO]}, more than max divided by min,"
