"""What pydantic says -> findings for people: where, what is wrong, what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic_core import ErrorDetails

from capsmith.findings import Finding, Location
from capsmith.spec import model, sections
from capsmith.spec.compose import Path
from capsmith.spec.document import Document
from capsmith.spec.fields import FLAG, LIST, MAPPING, TEXT, FieldSchema, Part, Validation
from capsmith.spec.quote import did_you_mean, listed, shown

_TAGS = frozenset({FLAG, LIST, MAPPING, TEXT, "[key]"})
_EXPECTED = {
    "string_type": "a text",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "tuple_type": "a list",
}
_MISSING_HINTS = {
    "capsmith": "start the file with `capsmith: 1`",
    "name": "add the name that clusterctl will know, such as `name: acme`",
    "repository": "add `repository: https://github.com/<org>/cluster-api-provider-<name>`",
    "contracts": "add `contracts: [v1beta2]`",
    "releases": "add `releases: {v0.1: v1beta2}`",
    "implements": "say which part of the contract the kind plays, such as `implements: {role}`",
    "rule": "add the CEL expression, such as `rule: self.min <= self.max`",
}
_ROLES = {
    "bootstrap": "BootstrapConfig",
    "controlPlane": "ControlPlane",
    "ipam": "IPPool",
    "addon": "Addon",
}
"""What the kinds of a section are examples of."""
_NOT_STRUCTURAL = {
    "uniqueItems": "use x-kubernetes-list-type: set",
    "$ref": "write the schema out, or use a YAML alias",
    "definitions": "write the schema out, or use a YAML alias",
    "dependencies": "say it with x-kubernetes-validations",
    "patternProperties": "use additionalProperties, and x-kubernetes-validations for the keys",
    "const": "use enum with one value",
    "oneOf": "say it with x-kubernetes-validations",
    "anyOf": "say it with x-kubernetes-validations, or x-kubernetes-int-or-string",
    "allOf": "say it with x-kubernetes-validations",
    "not": "say it with x-kubernetes-validations",
}


def translate(error: ErrorDetails, document: Document) -> Finding | None:
    """One error of pydantic as a finding; None for one that only follows from others."""
    is_key = error["loc"][-1:] == ("[key]",)
    path: Path = tuple(part for part in error["loc"] if part not in _TAGS)
    where = document.key(path) if is_key else document.value(path)
    kind = error["type"]
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
        if error["input"]:  # what is left after the items that have findings of their own
            return None
        return Finding("spec-empty", f"{_name(path)} is empty", where, hint="add an entry")
    context: Mapping[str, Any] = error.get("ctx") or {}
    if "hint" in context:
        subject = "" if is_key else f"{_name(path)}: "
        return Finding(kind, subject + error["msg"], where, hint=context["hint"])
    message = error["msg"].removeprefix("Input ").removeprefix("String ")
    return Finding(
        "spec-out-of-range", f"{_name(path)} {message}", where, hint="see `capsmith schema`"
    )


def _unknown(path: Path, document: Document) -> Finding:
    key = str(path[-1])
    hint = _NOT_STRUCTURAL.get(key) or did_you_mean(key, _known_keys(path[:-1]))
    return Finding(
        "spec-unknown-key",
        f"unknown key {shown(key)}{_inside(path)}",
        document.key(path),
        hint=hint,
    )


def _missing(path: Path, document: Document) -> Finding:
    key = str(path[-1])
    hint = _MISSING_HINTS.get(key, f"add {shown(key + ':')}")
    return Finding(
        "spec-missing-key",
        f"{shown(key)} is missing{_inside(path)}",
        document.key(path[:-1]),
        hint=hint.replace("{role}", _ROLES.get(str(path[0]), "InfraMachine")),
    )


def _wrong_type(path: Path, must: str, document: Document) -> Finding:
    value = _at(document.data, path)
    hint = "see `capsmith schema` for what may stand here"
    raw = document.raw(path)
    if "a text" in must and raw and not isinstance(value, str):
        hint = f'YAML reads plain {shown(raw)} as {_what(value)}; in quotes it is a text: "{raw}"'
    elif isinstance(value, str) and ("number" in must or "true" in must):
        hint = "leave the quotes out" if raw is None else hint
    elif "a list" in must and isinstance(value, str):
        hint = f"write [{raw or value}]" if len(value) <= 60 else "write it in brackets"
    elif value is None:
        hint = "give it a value, or leave the key out"
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
    given = str(value) if scalar else _what(value)
    message = f"{_name(path)} cannot be {shown(given) if scalar else given}"
    hint = did_you_mean(given, allowed) if isinstance(value, str) else "known"
    if given in allowed:
        message, hint = f"{_name(path)} must not be {_what(value)}", "leave the quotes out"
    elif hint.startswith("known"):
        hint = f"it can be {listed(allowed).replace(' and ', ' or ')}"
    return Finding("spec-not-one-of", message, where, hint=hint)


def _known_keys(path: Path) -> set[str]:
    if path == ("groups",):
        return set(model.SECTIONS)
    if path == ("namespaces",):
        return {*model.SECTIONS, "runtimeExtension"}
    part = _part(path)
    return {field.alias or name for name, field in part.model_fields.items()}


def _part(path: Path) -> type[Part]:
    """The model that describes what stands at ``path``."""
    match path:
        case ():
            return model.ProviderSpec
        case (section, _) if section in model.SECTIONS:
            return sections.KindSpec
        case (section, _, "printerColumns", _) if section in model.SECTIONS:
            return sections.PrinterColumnSpec
        case ("runtimeExtension",):
            return sections.RuntimeExtensionSpec
        case ("rbac", _):
            return model.PolicyRuleSpec
        case ("credentials",):
            return model.CredentialsSpec
        case ("apiVersions", _):
            return model.ApiVersionSpec
        case (*_, "validations" | "x-kubernetes-validations", int()):
            return Validation
    return FieldSchema


def _at(data: Any, path: Path) -> Any:
    for step in path:
        try:
            data = data[step]
        except (KeyError, IndexError, TypeError):
            return None
    return data


def _what(value: Any) -> str:
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a text"
    return "a list" if isinstance(value, list | tuple) else "a mapping"


def _name(path: Path) -> str:
    names = [str(part) for part in path if isinstance(part, str)]
    if not path:
        return "the file"
    if isinstance(path[-1], int):
        return f"item {path[-1] + 1} of {shown(names[-1])}" if names else f"item {path[-1] + 1}"
    return shown(names[-1])


def _inside(path: Path) -> str:
    return f" in {_name(path[:-1])}" if len(path) > 1 else ""
