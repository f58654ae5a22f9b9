"""Parse provider.yaml, and convert pydantic's errors to findings with a position and a hint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from capsmith.findings import Finding, Location, has_errors
from capsmith.provider_yaml import model
from capsmith.provider_yaml import model as kind_parts
from capsmith.provider_yaml import model as sections
from capsmith.provider_yaml.forms import (
    FLAG,
    LIST,
    MAPPING,
    TEXT,
    FieldSchema,
    NameLimits,
    SpecModel,
    Validation,
)
from capsmith.provider_yaml.manager import FeatureGateSpec, FlagSpec, ManagerSpec
from capsmith.provider_yaml.model import ProviderSpec
from capsmith.provider_yaml.nulls import check_nulls
from capsmith.provider_yaml.scale import ScaleSpec
from capsmith.provider_yaml.structural import check_structure
from capsmith.yamldoc.compose import Path
from capsmith.yamldoc.document import Document, parse_document
from capsmith.yamldoc.quote import join_names, quote, suggest

_TAGS = frozenset({FLAG, LIST, MAPPING, TEXT, "[key]"})
_EXPECTED = {
    "string_type": "a string",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "tuple_type": "a list",
}
_MISSING_HINTS = {
    "capsmith": "Start the file with `capsmith: 1`.",
    "name": "Add the name of the provider in clusterctl, such as `name: acme`.",
    "repository": "Add `repository: https://github.com/<org>/cluster-api-provider-<name>`.",
    "contracts": "Add `contracts: [v1beta2]`.",
    "releases": "Add `releases: {v0.1: v1beta2}`.",
    "implements": "Add the role of the kind in the contract, such as `implements: {role}`.",
    "rule": "Add the CEL expression, such as `rule: self.min <= self.max`.",
}
_ROLES = {
    "bootstrap": "BootstrapConfig",
    "controlPlane": "ControlPlane",
    "ipam": "IPPool",
    "addon": "Addon",
}
"""Role that is used as an example in messages about the kinds of a section."""
_NOT_STRUCTURAL = {
    "uniqueItems": "Use x-kubernetes-list-type: set.",
    "$ref": "Write the schema out, or use a YAML alias.",
    "definitions": "Write the schema out, or use a YAML alias.",
    "dependencies": "Use x-kubernetes-validations.",
    "patternProperties": "Use additionalProperties, and x-kubernetes-validations for the keys.",
    "const": "Use enum with one value.",
}


_KINDS: Mapping[object, type[SpecModel]] = {
    "infrastructure": sections.InfrastructureKindSpec,
    "bootstrap": sections.BootstrapKindSpec,
    "controlPlane": sections.ControlPlaneKindSpec,
    "ipam": sections.PoolKindSpec,
    "addon": sections.AddonKindSpec,
}
_OTHER_TYPES = {
    **dict.fromkeys(
        ("map", "dict", "dictionary", "hash", "mapping"),
        "Write `type: object` with `additionalProperties: string`, or the schema of its values.",
    ),
    **dict.fromkeys(("list", "set", "slice"), "Write `type: array` with `items: string`."),
    **dict.fromkeys(("str", "text"), "Write `type: string`."),
    **dict.fromkeys(("float", "double"), "Write `type: number`."),
    **dict.fromkeys(
        ("int32", "int64"), "Write `type: integer` with a `format`, or only the shorthand."
    ),
}
"""Type names from other languages, with the hints for replacing them."""


class Parsed(NamedTuple):
    """A parsed provider.yaml, and the findings about it.

    ``spec`` is None if any finding is an error.
    """

    document: Document | None
    spec: ProviderSpec | None
    findings: tuple[Finding, ...]


def parse(text: str, file: str) -> Parsed:
    """Parse and validate a provider.yaml. ``file`` is the name to use in findings.

    Invalid input does not raise an exception, but results in findings with these ids: ``yaml-*``,
    ``spec-*``, ``field-*``, ``schema-*`` and the ids of contract rules about names (CC-50, CRD-04
    …).
    """
    document, findings = parse_document(text, file)
    if document is None:
        return Parsed(None, None, findings)
    return validate_document(document)


def validate_document(document: Document) -> Parsed:
    """Validate a provider.yaml whose YAML has already been parsed.

    Reports the same findings as :func:`parse`, except for syntax errors.
    """
    try:
        spec = ProviderSpec.model_validate(document.data)
    except ValidationError as error:
        translated = (translate(part, document) for part in error.errors(include_url=False))
        return Parsed(document, None, tuple(finding for finding in translated if finding))
    findings = (*check_nulls(spec, document), *check_structure(spec, document))
    return Parsed(document, None if has_errors(findings) else spec, findings)


def translate(error: ErrorDetails, document: Document) -> Finding | None:
    """Convert a pydantic error to a finding, or to None if another error already explains it."""
    is_key = error["loc"][-1:] == ("[key]",)
    # pydantic adds the tags of unions to the location, although they are in no file.
    path: Path = tuple(part for part in error["loc"] if part not in _TAGS)
    where = document.key(path) if is_key else document.value(path)
    kind = error["type"]
    # A mapping with literal keys, such as `groups`, reports an unknown key as a wrong literal.
    if kind == "extra_forbidden" or (is_key and kind == "literal_error"):
        return _unknown(path, document)
    if kind == "missing":
        return _missing(path, document)
    if kind in _EXPECTED:
        return _wrong_type(path, f"must be {_EXPECTED[kind]}", document)
    if kind == "spec-wrong-type":
        return _wrong_type(path, error["msg"], document)
    if kind == "literal_error":
        return _not_one_of(path, error, where)
    if kind in ("too_short", "string_too_short"):
        if error["input"]:  # too short only because its items have findings of their own
            return None
        return Finding("spec-empty", f"{_name(path)} is empty", where, hint="Add an entry.")
    context: Mapping[str, Any] = error.get("ctx") or {}
    if "hint" in context:
        subject = "" if is_key else f"{_name(path)}: "
        return Finding(kind, subject + error["msg"], where, hint=context["hint"])
    message = error["msg"].removeprefix("Input ").removeprefix("String ")
    return Finding(
        "spec-out-of-range",
        f"{_name(path)} {message}",
        where,
        hint="Run `capsmith schema` to see what is allowed.",
    )


def _unknown(path: Path, document: Document) -> Finding:
    key = str(path[-1])
    hint = (
        document.suggest_quotes(path)
        or _NOT_STRUCTURAL.get(key)
        or suggest(key, _known_keys(path[:-1]))
    )
    return Finding(
        "spec-unknown-key",
        f"unknown key {quote(key)}{_inside(path)}",
        document.key(path),
        hint=hint,
    )


def _missing(path: Path, document: Document) -> Finding:
    key = str(path[-1])
    hint = _MISSING_HINTS.get(key, f"Add {quote(key + ':')}.")
    return Finding(
        "spec-missing-key",
        f"{quote(key)} is missing{_inside(path)}",
        document.key(path[:-1]),
        hint=hint.replace("{role}", _ROLES.get(str(path[0]), "InfraMachine")),
    )


def _wrong_type(path: Path, must: str, document: Document) -> Finding:
    value = _at(document.data, path)
    # Typical YAML pitfalls first: `version: 1.30` is a number, and `flag: "true"` is a string.
    hint = "Run `capsmith schema` to see what is allowed here."
    raw = document.raw(path)
    if "a string" in must and raw and not isinstance(value, str):
        hint = f'Write "{raw}" in quotes: YAML reads plain {quote(raw)} as {_what(value)}.'
    elif isinstance(value, str) and ("number" in must or "true" in must):
        hint = "Remove the quotes." if raw is None else hint
    elif "a list" in must and isinstance(value, str):
        hint = f"Write [{raw or value}]." if len(value) <= 60 else "Write it in brackets."
    elif value is None:
        hint = "Give it a value, or remove the key."
    fraction = isinstance(value, float) and "whole number" in must
    return Finding(
        "spec-wrong-type",
        f"{_name(path)} {must}, not {value if fraction else _what(value)}",
        document.value(path),
        hint=hint,
    )


def _not_one_of(path: Path, error: ErrorDetails, where: Location) -> Finding:
    expected = (error.get("ctx") or {}).get("expected", "")
    allowed = [word.strip("' ") for word in expected.replace(" or ", ", ").split(", ")]
    value = error["input"]
    scalar = isinstance(value, str | int | float)
    shown = str(value) if scalar else _what(value)
    message = f"{_name(path)} cannot be {quote(shown) if scalar else shown}"
    hint = suggest(shown, allowed) if isinstance(value, str) else ""
    if shown in allowed:
        message, hint = f"{_name(path)} must not be {_what(value)}", "Remove the quotes."
    elif path[-1] == "type" and shown in _OTHER_TYPES:
        hint = _OTHER_TYPES[shown]
    elif not hint.startswith("Did"):
        hint = f"Use {join_names(allowed).replace(' and ', ' or ')}."
    return Finding("spec-not-one-of", message, where, hint=hint)


def _known_keys(path: Path) -> set[str]:
    if path == ("groups",):
        return set(model.SECTIONS)
    if path in (("namespaces",), ("components",)):
        return {*model.SECTIONS, "runtimeExtension"}
    part = _part(path)
    return {part.find_key(name) for name in part.model_fields}


def _part(path: Path) -> type[SpecModel]:
    """Return the model of the mapping at ``path``."""
    if path[:1] and path[0] in _KINDS and (found := _part_of_kind(path)):
        return found
    match path:
        case ():
            return model.ProviderSpec
        case ("runtimeExtension",):
            return sections.RuntimeExtensionSpec
        case ("manager",):
            return ManagerSpec
        case ("manager", "flags", _):
            return FlagSpec
        case ("manager", "featureGates", _):
            return FeatureGateSpec
        case ("rbac", _):
            return model.PolicyRuleSpec
        case ("credentials",) | ("credentials", int()):
            return model.CredentialsSpec
        case (*_, "apiVersions", _):
            return kind_parts.ApiVersionSpec
        case (*_, "validations" | "objectValidations" | "x-kubernetes-validations", int()):
            return Validation
    return FieldSchema


def _part_of_kind(path: Path) -> type[SpecModel] | None:
    """Return the model of a mapping in a section; None for fields and what all parts can have."""
    match path[2:]:
        case () if len(path) == 2:
            return _KINDS[path[0]]
        case ("bootstrap",):
            return sections.ForeignKindSpec
        case ("printerColumns", _):
            return kind_parts.PrinterColumnSpec
        case ("watches", _):
            return kind_parts.WatchSpec
        case ("webhooks",):
            return kind_parts.WebhooksSpec
        case ("objectName",):
            return NameLimits
        case ("template",):
            return kind_parts.TemplateSpec
        case ("template", "versions", _):
            return kind_parts.TemplateVersionSpec
        case ("versions", _):
            return kind_parts.VersionFieldsSpec
        case (*_, "scale"):
            return ScaleSpec
        case (*_, "contractFields"):
            return kind_parts.ContractFieldsSpec
        case (*_, "partLimits", _):
            return kind_parts.PartLimits
    return None


def _at(data: Any, path: Path) -> Any:
    for step in path:
        try:
            data = data[step]
        except (KeyError, IndexError, TypeError):
            return None
    return data


def _what(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a string"
    return "a list" if isinstance(value, list | tuple) else "a mapping"


def _name(path: Path) -> str:
    names = [str(part) for part in path if isinstance(part, str)]
    if not path:
        return "the file"
    if isinstance(path[-1], int):
        return f"item {path[-1] + 1} of {quote(names[-1])}" if names else f"item {path[-1] + 1}"
    return quote(names[-1])


def _inside(path: Path) -> str:
    return f" in {_name(path[:-1])}" if len(path) > 1 else ""
