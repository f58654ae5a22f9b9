"""Words for schemas, as tables of fields have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def type_words(schema: Mapping[str, Any], *, formats: bool = False) -> str:
    """Return the type of a schema with that of its items or values, such as ``list of string``.

    With ``formats``, a format follows the type: ``integer (int32)``.
    """
    if schema.get("x-kubernetes-int-or-string"):
        return "integer or string"
    kind = str(schema.get("type", "any"))
    if kind == "array":
        return f"list of {type_words(schema.get('items', {}), formats=formats)}"
    values = schema.get("additionalProperties")
    if isinstance(values, Mapping):
        return f"map of {type_words(values, formats=formats)}"
    return f"{kind} ({schema['format']})" if formats and "format" in schema else kind
