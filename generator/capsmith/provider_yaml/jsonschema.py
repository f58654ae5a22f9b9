"""The JSON Schema for provider.yaml that editors use, generated from the model.

The generated schema is ``schemas/provider.schema.json``, which a test keeps up to date.
"""

from __future__ import annotations

import json
from typing import Any

from capsmith.provider_yaml.model import ProviderSpec

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def build_provider_schema() -> dict[str, Any]:
    """Return the JSON Schema for provider.yaml as plain data, identical on every run."""
    made = tidy(ProviderSpec.model_json_schema(by_alias=True, mode="validation"))
    made.pop("title", None)
    return {"$schema": DIALECT, "title": "Cluster API provider, for capsmith", **made}


def format_provider_schema() -> str:
    """Return the JSON Schema for provider.yaml as a JSON string that ends with a newline."""
    return json.dumps(build_provider_schema(), indent=2, ensure_ascii=False) + "\n"


def tidy(node: Any) -> Any:
    """Return part of a schema without pydantic's titles, and without ``null`` for optional keys."""
    if isinstance(node, list):
        return [tidy(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {key: tidy(value) for key, value in node.items() if not _is_noise(key, value)}
    if len(patterns := kept.pop("patternProperties", {})) == 1:
        # Editors flag a key of another form only when the names have a schema.
        ((pattern, value),) = patterns.items()
        names = {"pattern": pattern, **kept.get("propertyNames", {})}
        kept |= {"propertyNames": names, "additionalProperties": value}
    choices = kept.get("anyOf", [])
    without_null = [choice for choice in choices if choice != {"type": "null"}]
    if len(without_null) == len(choices):
        return kept
    del kept["anyOf"]
    if len(without_null) == 1:
        return {**without_null[0], **kept}
    return {**kept, "anyOf": without_null}


def _is_noise(key: str, value: Any) -> bool:
    if key == "title":
        return isinstance(value, str)
    return key == "default" and value is None
