"""The page of all keys of ``provider.yaml``, from its JSON Schema."""

from __future__ import annotations

import json
from typing import Any

from capsmith.provider_yaml.jsonschema import build_provider_schema

Schema = dict[str, Any]

_HEAD = """# provider.yaml

Every key, from the JSON Schema that `capsmith schema` prints.  What they are for is in
[how to describe your kinds and fields](../how-to/fields.md); a required key is **bold**.

"""
_TITLES = {
    "InfrastructureKindSpec": "Infrastructure kind",
    "BootstrapKindSpec": "Bootstrap kind",
    "ControlPlaneKindSpec": "Control plane kind",
    "PoolKindSpec": "IP pool kind",
    "AddonKindSpec": "Add-on kind",
    "FieldSchema": "Field",
    "ApiVersionSpec": "API version",
    "ContractFieldsSpec": "Contract fields",
    "CredentialsSpec": "Credentials",
    "FeatureGateSpec": "Feature gate",
    "FlagSpec": "Flag",
    "ForeignKindSpec": "Kind of another provider",
    "HookSpec": "Hook",
    "ManagerSpec": "Manager",
    "NameLimits": "Limits of names",
    "PartLimits": "Limits of a part",
    "PolicyRuleSpec": "Permission",
    "PrinterColumnSpec": "Printer column",
    "RuntimeExtensionSpec": "Runtime extension",
    "ScaleSpec": "Subresource scale",
    "TemplateSpec": "Template",
    "TemplateVersionSpec": "Template in an API version",
    "Validation": "Rule in CEL",
    "VersionFieldsSpec": "Fields of an API version",
    "WatchSpec": "Watch",
    "WebhooksSpec": "Webhooks",
}
_LIMITS = {
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {}",
    "maxItems": "at most {}",
    "minProperties": "at least {}",
    "maxProperties": "at most {}",
    "minimum": "at least {}",
    "maximum": "at most {}",
}


def provider_yaml_page() -> str:
    """Return the page as Markdown."""
    schema = build_provider_schema()
    definitions: dict[str, Schema] = schema["$defs"]
    unknown = definitions.keys() - _TITLES.keys()
    assert not unknown, f"titles are missing: {sorted(unknown)}"
    parts = [_HEAD, _table(schema)]
    for name, title in _TITLES.items():
        if name in definitions:
            parts.append(f"\n## {title}\n\n{definitions[name].get('description', '')}\n\n")
            parts.append(_table(definitions[name]))
    return "".join(parts)


def _table(schema: Schema) -> str:
    rows = ["| Key | Value | Meaning |\n|---|---|---|\n"]
    required = schema.get("required", [])
    for key, value in schema.get("properties", {}).items():
        name = f"**`{key}`**" if key in required else f"`{key}`"
        meaning = " ".join(str(value.get("description", "")).split())
        rows.append(f"| {name} | {_value(value)} | {_escaped(meaning)}{_more(value)} |\n")
    return "".join(rows)


def _more(schema: Schema) -> str:
    """Return default and limits as a sentence."""
    limits = [text.format(schema[key]) for key, text in _LIMITS.items() if key in schema]
    default = schema.get("default")
    if default is not None and default not in ([], {}):
        limits.append(f"default `{json.dumps(default)}`")
    return f" {'; '.join(limits)[:1].upper()}{'; '.join(limits)[1:]}." if limits else ""


def _value(schema: Schema) -> str:
    """Return what a value may be."""
    if reference := schema.get("$ref"):
        title = _TITLES[reference.rpartition("/")[2]]
        return f"[{title}](#{title.lower().replace(' ', '-')})"
    if choices := schema.get("oneOf") or schema.get("anyOf"):
        return " or ".join(dict.fromkeys(_value(choice) for choice in choices))
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_value(schema.get('items', {}))}"
    if schema.get("type") == "object":
        return _map(schema)
    kind = schema.get("type", "any value")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _map(schema: Schema) -> str:
    values = schema.get("additionalProperties", {})
    keys = schema.get("propertyNames", {}).get("enum")
    shown = _value(values) if isinstance(values, dict) and values else "any value"
    if keys:
        return f"map of {', '.join(f'`{key}`' for key in keys)} to {shown}"
    return f"map to {shown}"


def _escaped(text: str) -> str:
    """Return text with YAML in braces and JSON paths as code, and no pipe that ends a cell."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
