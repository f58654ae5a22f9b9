"""Compare what patches of a ClusterClass write with the type of the field that they write to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capsmith.judge.checks.mismatches import find_value_mismatches
from capsmith.manifests.parse import has_variable, mapping_of, text_of

_INT_OR_STRING = "x-kubernetes-int-or-string"
_NUMBERS = frozenset({"integer", "number"})


def explain_value(operation: Any, schema: Any, variables: Mapping[str, Any]) -> str:
    """Return why the field with a schema cannot have what an operation writes; empty if it can.

    ``variables`` are the schemas of the class's variables by name.
    """
    if text_of(operation, "op") not in ("add", "replace") or not mapping_of(schema):
        return ""
    target, value = text_of(operation, "path"), mapping_of(operation).get("value")
    if value is not None:
        # Other patches may add the fields that a value lacks.
        for mismatch in find_value_mismatches(schema, value, (), False):
            place = "/".join((target, *map(str, mismatch.path)))
            return f"the value for {place} {mismatch.message}"
    name = text_of(operation, "valueFrom", "variable")
    given, wanted = (text_of(each, "type") for each in (variables.get(name), schema))
    is_known = given and wanted and not has_variable(given)
    if not is_known or mapping_of(schema).get(_INT_OR_STRING) or given == wanted:
        return ""
    if {given, wanted} == _NUMBERS:
        return ""
    return f"variable {name} for {target} is of type {given}; expected {wanted}"
