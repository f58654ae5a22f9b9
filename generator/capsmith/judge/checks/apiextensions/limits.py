"""Check the numeric limits in a CRD version's schema against the types of their fields.

The API server accepts the CRD, but refuses each value: see ``numberValidator`` of kube-openapi.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from capsmith.judge.checks.apiextensions.model import Fault, Schema
from capsmith.manifests.parse import is_mapping, mapping_of
from capsmith.provider_yaml.values import NUMERIC_LIMITS, explain_misfit
from capsmith.yamldoc.compose import Path

_LIMITS = frozenset(NUMERIC_LIMITS)


def find_limit_faults(schema: Schema, path: Path = ()) -> Iterator[Fault]:
    """Yield the limits because of which the API server refuses all values of a field."""
    for key in NUMERIC_LIMITS if not _LIMITS.isdisjoint(schema) else ():
        limit = schema.get(key)
        if not isinstance(limit, int | float) or isinstance(limit, bool):
            continue
        if misfit := explain_misfit(limit, schema):
            yield Fault((*path, key), f"{key} {limit} is {misfit}")
    for name, part in mapping_of(schema, "properties").items():
        yield from _find_in(part, (*path, "properties", str(name)))
    for key in ("items", "additionalProperties"):
        yield from _find_in(schema.get(key), (*path, key))


def _find_in(part: Any, path: Path) -> Iterator[Fault]:
    if is_mapping(part):
        yield from find_limit_faults(part, path)
