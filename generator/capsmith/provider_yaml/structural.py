"""Check that all kinds' fields form structural schemas that the API server accepts.

The findings refer to lines in provider.yaml, so that authors learn of an error before ``kubectl
apply`` rejects the CRD.  CEL rules are checked in :mod:`capsmith.provider_yaml.rules`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from capsmith.findings import Finding
from capsmith.provider_yaml import rules
from capsmith.provider_yaml.field_schemas import (
    JUNCTORS,
    convert_field,
    convert_name_limits,
    list_required,
)
from capsmith.provider_yaml.forms import FieldLike, FieldSchema, NameLimits
from capsmith.provider_yaml.model import (
    ContractFieldsSpec,
    InfrastructureKindSpec,
    KindSpec,
    ProviderSpec,
    TemplateSpec,
    VersionFieldsSpec,
)
from capsmith.provider_yaml.patterns import explain_refusal
from capsmith.provider_yaml.satisfiable import (
    explain_empty_range,
    explain_empty_set,
    explain_few_properties,
    explain_many_required,
)
from capsmith.provider_yaml.values import (
    NUMERIC_LIMITS,
    explain_misfit,
    find_value_errors,
    is_of_type,
    make_json_key,
)
from capsmith.yamldoc.document import Document, PathReporter
from capsmith.yamldoc.quote import join_names, quote, suggest

_SCALARS = ("string", "integer", "number", "boolean")
_LIST_TYPE, _MAP_KEYS = "x-kubernetes-list-type", "x-kubernetes-list-map-keys"


def check_list(field: FieldSchema, reporter: PathReporter) -> None:
    """Report lists without items, and list types that the API server cannot merge.

    Finding ids: ``schema-no-items``, ``schema-list-set``, ``schema-list-map-keys`` and
    ``schema-list-nullable``.
    """
    if field.type == "array" and field.items is None:
        hint = "Add items, such as `items: {type: string}`."
        reporter.add_error("schema-no-items", "a list must declare its items", hint)
    if field.items is None:
        return
    # Server-side apply identifies the items of sets and maps by value or key, and null is neither.
    if field.list_type in ("set", "map") and convert_field(field.items).get("nullable"):
        message = f"items of a {field.list_type} cannot be null"
        reporter.add_error("schema-list-nullable", message, "Remove nullable.", "items", "nullable")
    if field.list_type == "set":
        _set(field.items, reporter)
    if field.list_type == "map":
        _map(field, reporter)
    elif field.list_map_keys is not None:
        reporter.add_error_at_key(
            "schema-list-map-keys",
            f"{_MAP_KEYS} requires a list of type map",
            f"Add `{_LIST_TYPE}: map`.",
            _MAP_KEYS,
        )


def _set(items: FieldLike, reporter: PathReporter) -> None:
    schema = convert_field(items)
    atomic_list = schema.get(_LIST_TYPE) == "atomic"
    atomic_object = schema.get("x-kubernetes-map-type") == "atomic"
    if schema.get("type") not in _SCALARS and not (atomic_list or atomic_object):
        reporter.add_error(
            "schema-list-set",
            "items of a set must be scalars or atomic",
            "Use a list of type map with keys, or `x-kubernetes-map-type: atomic` on the items.",
            _LIST_TYPE,
        )


def _map(field: FieldSchema, reporter: PathReporter) -> None:
    if field.list_map_keys is None:
        hint = f"Name the properties that identify an item: `{_MAP_KEYS}: [name]`."
        reporter.add_error("schema-list-map-keys", f"a list of type map requires {_MAP_KEYS}", hint)
        return
    items = field.items
    if not isinstance(items, FieldSchema) or items.type != "object":
        hint = "Give the items `type: object` and properties."
        message = "items of a list of type map must be objects"
        reporter.add_error("schema-list-map-keys", message, hint, "items")
        return
    seen: set[str] = set()
    for index, key in enumerate(field.list_map_keys):
        key_reporter = reporter.at(_MAP_KEYS, index)
        if key in seen:
            message = f"duplicate entry {quote(key)}"
            key_reporter.add_error("schema-list-map-keys", message, "Keep one.")
        seen.add(key)
        _map_key(key, items, key_reporter)


def _map_key(key: str, items: FieldSchema, reporter: PathReporter) -> None:
    properties = items.properties or {}
    if key not in properties:
        message = f"{quote(key)} is not a property of the items"
        reporter.add_error("schema-list-map-keys", message, suggest(key, properties))
        return
    schema = convert_field(properties[key])
    if schema.get("type") not in _SCALARS:
        message = f"{quote(key)} identifies items, so it must be a scalar"
        reporter.add_error("schema-list-map-keys", message, f"Use one of {', '.join(_SCALARS)}.")
    if schema.get("nullable"):
        message = f"{quote(key)} identifies items, so it cannot be null"
        reporter.add_error("schema-list-map-keys", message, "Remove nullable.")
    # Server-side apply could not distinguish two items that both lack the key.
    if key not in list_required(items) and "default" not in schema:
        message = f"{quote(key)} identifies items, so it must be required or have a default"
        reporter.add_error(
            "schema-list-map-keys", message, "Write `required: true` at the property."
        )


_BOUNDS = (
    ("minimum", "maximum"),
    ("minLength", "maxLength"),
    ("minItems", "maxItems"),
    ("minProperties", "maxProperties"),
)
_EMPTY = {
    "minimum": explain_empty_range,
    "minProperties": explain_few_properties,
    "maxProperties": explain_many_required,
    "minItems": explain_empty_set,
}
"""Functions that explain why no value satisfies a limit, by the limit."""
_LIMITS = """
    format enum pattern minimum maximum exclusive_minimum exclusive_maximum multiple_of min_length
    max_length min_items max_items min_properties max_properties items properties required not_
"""
_ALLOWED = frozenset(_LIMITS.split()) | frozenset(JUNCTORS)


# In a structural schema, limits in allOf, anyOf, oneOf and not have no types, defaults or
# descriptions: the field next to them declares everything that they mention.
def check_limits(schema: Mapping[str, Any], reporter: PathReporter) -> None:
    """Report limits and patterns that the API server rejects or that no value can satisfy.

    Finding ids: ``schema-bounds`` and ``schema-pattern``.
    """
    for low, high in _BOUNDS:
        if low in schema and high in schema and schema[low] > schema[high]:
            message = f"{low} {schema[low]} is greater than {high} {schema[high]}"
            reporter.add_error("schema-bounds", message, "Swap them.", low)
    for exclusive, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if exclusive in schema and bound not in schema:
            message = f"{exclusive} requires {bound}"
            reporter.add_error("schema-bounds", message, f"Add {bound}.", exclusive)
    if schema.get("multipleOf", 1) <= 0:
        message = "multipleOf must be greater than 0"
        reporter.add_error("schema-bounds", message, "Remove it.", "multipleOf")
    for key in NUMERIC_LIMITS:
        if key in schema and (misfit := explain_misfit(schema[key], schema)):
            # The API server accepts the CRD, and a CRD that exists may have such a limit.
            message = f"{key} {schema[key]} is {misfit}: the API server refuses each value"
            hint = "Write a number of the field's type."
            reporter.add_warning("schema-bounds", message, hint, key)
    for key, explain in _EMPTY.items():
        if key in schema and (why := explain(schema)):
            reporter.add_error("schema-bounds", why, "Widen the limits.", key)
    if "pattern" in schema and (why := explain_refusal(schema["pattern"])):
        reporter.add_error(
            "schema-pattern",
            f"the pattern is not a valid RE2 regular expression: {why}",
            "Use the syntax of the API server: https://github.com/google/re2/wiki/Syntax.",
            "pattern",
        )


def check_junctors(field: FieldSchema, schema: Mapping[str, Any], reporter: PathReporter) -> None:
    """Report ``schema-junctor`` for invalid ``allOf``, ``anyOf``, ``oneOf`` and ``not``."""
    for key, below in _junctors(field):
        _check(below, schema, reporter.at(*key))


def _junctors(field: FieldSchema) -> Iterator[tuple[tuple[str | int, ...], FieldSchema]]:
    for name, key in JUNCTORS.items():
        for index, below in enumerate(getattr(field, name) or ()):
            yield (key, index), below
    if field.not_ is not None:
        yield ("not",), field.not_


def _check(limits: FieldSchema, outer: Mapping[str, Any], reporter: PathReporter) -> None:
    for name in sorted(limits.model_fields_set - _ALLOWED):
        key = limits.find_key(name)
        message = f"{quote(key)} cannot be in allOf, anyOf, oneOf or not"
        reporter.add_error_at_key("schema-junctor", message, "Move it to the field itself.", key)
    if isinstance(limits.required, bool):
        message = "`required` must be a list of properties here"
        reporter.add_error("schema-junctor", message, "Write the names in brackets.", "required")
    check_limits(convert_field(limits), reporter)
    check_junctors(limits, outer, reporter)
    if limits.items is not None:
        _check_alternative_below(limits.items, outer.get("items"), reporter.at("items"), {})
    declared = outer.get("properties", {})
    for name, below in (limits.properties or {}).items():
        _check_alternative_below(
            below, declared.get(name), reporter.at("properties", name), declared
        )


def _check_alternative_below(
    limits: FieldLike,
    outer: Mapping[str, Any] | None,
    reporter: PathReporter,
    names: Mapping[str, Any],
) -> None:
    name = str(reporter.path[-1])
    if outer is None:
        message = f"the field that these limits apply to does not declare {quote(name)}"
        reporter.add_error_at_key("schema-junctor", message, suggest(name, names))
    elif isinstance(limits, FieldSchema):
        _check(limits, outer, reporter)
    else:
        message = "limits cannot have a type: the field itself declares it"
        reporter.add_error(
            "schema-junctor", message, "Write a mapping such as {minLength: 1}, or {}."
        )


_NUMERIC = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "format")
_MEANT_FOR = {
    "string": ("minLength", "maxLength", "pattern", "format"),
    "integer": _NUMERIC,
    "number": _NUMERIC,
    "array": (
        "items",
        "minItems",
        "maxItems",
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-preserve-unknown-fields",
    ),
    "object": (
        "properties",
        "additionalProperties",
        "minProperties",
        "maxProperties",
        "x-kubernetes-map-type",
        "x-kubernetes-preserve-unknown-fields",
    ),
}
_TEXT_FORMATS = """
    bsonobjectid uri email hostname ipv4 ipv6 cidr mac uuid uuid3 uuid4 uuid5 isbn isbn10 isbn13
    creditcard ssn hexcolor rgbcolor byte password date duration date-time datetime
    k8s-short-name k8s-long-name
"""
_FORMATS = {
    "string": tuple(_TEXT_FORMATS.split()),
    "integer": ("int32", "int64"),
    "number": ("float", "double"),
}
_FORMAT_HINTS = {
    "ip": "Write ipv4 or ipv6, or for both the rule isIP(self) in x-kubernetes-validations.",
    "url": "Write uri, or the rule isURL(self) in x-kubernetes-validations.",
}
_RULES = "x-kubernetes-validations"
_FLAGS = ("x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields")


def check_structure(spec: ProviderSpec, document: Document) -> list[Finding]:
    """Check every kind's fields. Finding ids: ``schema-*``."""
    findings: list[Finding] = []
    for section, kind, described in spec.kinds():
        top = PathReporter(document, (section, kind), findings)
        _parts(described, top)
        for version, described_there in (described.versions or {}).items():
            _parts(described_there, top.at("versions", version))
        if isinstance(described, InfrastructureKindSpec):
            _fields(described.instance_status, top.at("instanceStatus"))
        if isinstance(described.template, TemplateSpec):
            _template(described.template, top.at("template"))
        if described.object_name is not None:
            _name(described.object_name, top.at("objectName"))
    for path, identity in spec.identities():
        own = None if isinstance(identity, str) else identity.spec
        _fields(own, PathReporter(document, (*path, "spec"), findings))
    return findings


def _parts(described: KindSpec | VersionFieldsSpec, reporter: PathReporter) -> None:
    for part, fields in (("spec", described.spec), ("status", described.status)):
        _fields(fields, reporter.at(part))
    _contract_fields(described.contract_fields, reporter.at("contractFields"))
    for index, rule in enumerate(described.validations or ()):
        rules.check_form(rule, reporter.at("validations", index))
    for index, rule in enumerate(described.object_validations or ()):
        rules.check_form(rule, reporter.at("objectValidations", index))


def _name(described: NameLimits, reporter: PathReporter) -> None:
    schema = convert_name_limits(described)
    check_limits(schema, reporter)
    rules.check_expressions(
        list(enumerate(described.validations or ())), schema, reporter.at(_RULES)
    )


def _template(described: TemplateSpec, reporter: PathReporter) -> None:
    if described.object_name is not None:
        _name(described.object_name, reporter.at("objectName"))
    versions = described.versions or {}
    for version, here in (
        ("", reporter),
        *((each, reporter.at("versions", each)) for each in versions),
    ):
        written = versions[version] if version else described
        _fields(written.spec, here.at("spec"))
        _fields(written.status, here.at("status"))
        for part, fields in (written.part_fields or {}).items():
            _fields(fields, here.at("partFields", part))
        _contract_fields(written.contract_fields, here.at("contractFields"))
        if written.metadata is not None:
            _field(written.metadata, here.at("metadata"))
        for index, rule in enumerate(written.validations or ()):
            rules.check_form(rule, here.at("validations", index))


def _contract_fields(described: ContractFieldsSpec | None, reporter: PathReporter) -> None:
    if described is not None:
        _fields(described.spec, reporter.at("spec"))
        _fields(described.status, reporter.at("status"))


def _fields(fields: Mapping[str, FieldLike] | None, reporter: PathReporter) -> None:
    for name, field in (fields or {}).items():
        _field(field, reporter.at(name))


def _field(field: FieldLike, reporter: PathReporter) -> None:
    if isinstance(field, str):
        return
    schema = convert_field(field)
    _type(field, schema, reporter)
    _keywords(field, reporter)
    check_limits(schema, reporter)
    check_junctors(field, schema, reporter)
    _object(field, reporter)
    check_list(field, reporter)
    rules.check_rules(field, schema, reporter)
    _enum(field, schema, reporter)
    if "default" in field.model_fields_set:
        _default(field, schema, reporter)
    if "example" in field.model_fields_set:
        _value("example", field.example, schema, reporter)
    _below(field, reporter)


def _below(field: FieldSchema, reporter: PathReporter) -> None:
    for name, below in (field.properties or {}).items():
        _field(below, reporter.at("properties", name))
    # oldSelf exists only if the API server can pair an old value with a new one: properties by
    # name, and items of a list of type map by key.  Items of other lists, and everything in them,
    # have none.
    if field.items is not None:
        correlated = reporter.correlated and field.list_type == "map"
        bounded = reporter.bounded and field.max_items is not None
        _field(field.items, replace(reporter.at("items"), correlated=correlated, bounded=bounded))
    if field.additional_properties is not None:
        bounded = reporter.bounded and field.max_properties is not None
        values = replace(reporter.at("additionalProperties"), bounded=bounded)
        _field(field.additional_properties, values)


def _type(field: FieldSchema, schema: dict[str, Any], reporter: PathReporter) -> None:
    for flag in _FLAGS:
        if schema.get(flag) is False:
            reporter.add_error("schema-flag", f"{flag} can only be true", "Remove it.", flag)
    if field.int_or_string and field.type is not None:
        message = "an int-or-string field cannot have a type"
        reporter.add_error("schema-type", message, "Remove type.", "type")
    if field.type is None and not field.int_or_string and not field.preserve_unknown:
        guesses = [kind for kind, keys in _MEANT_FOR.items() if any(key in schema for key in keys)]
        hint = f"Add `type: {guesses[0]}`." if guesses else "Add a type, such as `type: string`."
        reporter.add_error("schema-type", "the field has no type", hint)


def _keywords(field: FieldSchema, reporter: PathReporter) -> None:
    written = {field.find_key(name) for name in field.model_fields_set}
    if field.type is not None:
        others = {key for keys in _MEANT_FOR.values() for key in keys}
        others -= set(_MEANT_FOR.get(field.type, ()))
        for key in sorted(written & others):
            message = f"{quote(key)} does not apply to type {field.type}"
            reporter.add_error_at_key("schema-keyword", message, "Remove it.", key)
    if isinstance(field.required, tuple) and field.properties is None:
        message = "`required` lists properties, but none are declared"
        reporter.add_error("schema-required", message, "Add properties, or write true.", "required")
    known = _FORMATS.get(field.type or "", ())
    if field.format is not None and known and field.format not in known:
        message = f"the API server does not check the format {quote(field.format)}"
        hint = _FORMAT_HINTS.get(field.format) or suggest(field.format, known)
        reporter.add_warning("schema-format", message, hint, "format")


def _object(field: FieldSchema, reporter: PathReporter) -> None:
    properties = field.properties or {}
    if field.properties is not None and field.additional_properties is not None:
        # JSON Schema allows both together, but structural schemas do not.
        message = "properties and additionalProperties exclude each other"
        hint = "Move the free keys into a separate field."
        reporter.add_error("schema-object", message, hint, "additionalProperties")
    listed_names = field.required if isinstance(field.required, tuple) else ()
    for index, name in enumerate(listed_names):
        if properties and name not in properties:
            message = f"{quote(name)} is required but not declared in properties"
            hint = suggest(name, properties)
            reporter.add_error("schema-required", message, hint, "required", index)
    open_ended = field.additional_properties is not None or field.preserve_unknown
    if field.type == "object" and not properties and not open_ended:
        reporter.add_warning(
            "schema-object",
            "the object declares no properties, so the API server drops everything in it",
            "Add properties, additionalProperties or x-kubernetes-preserve-unknown-fields.",
        )


def _enum(field: FieldSchema, schema: dict[str, Any], reporter: PathReporter) -> None:
    seen: set[Hashable] = set()
    for index, value in enumerate(field.enum or ()):
        key = make_json_key(value)
        if key in seen:
            message = f"duplicate enum value {quote(str(value))}"
            reporter.add_error("schema-enum", message, "Keep one.", "enum", index)
        seen.add(key)
        null = value is None and field.nullable
        if field.type is not None and not null and not is_of_type(value, field.type):
            raw = reporter.document.raw((*reporter.path, "enum", index))
            hint = f"Write a value of type {field.type}" + (
                f', in quotes: "{raw}".' if raw else "."
            )
            message = "a value in the enum has the wrong type"
            reporter.add_error("schema-enum", message, hint, "enum", index)
    # Nullable does not extend the enum: the API server also compares null with its values.
    if field.nullable and field.enum is not None and None not in field.enum:
        hint = f"Add null to {join_names(str(value) for value in field.enum[:3])}."
        reporter.add_error(
            "schema-enum", "nullable has no effect: null is not in the enum", hint, "enum"
        )


def _default(field: FieldSchema, schema: dict[str, Any], reporter: PathReporter) -> None:
    _value("default", field.default, schema, reporter)
    if field.required is True:
        message = "a field with a default is never missing, so `required` has no effect"
        reporter.add_warning("schema-default", message, "Remove one of the two.", "required")


def _value(key: str, value: Any, schema: dict[str, Any], reporter: PathReporter) -> None:
    for path, why in list(find_value_errors(value, schema))[:5]:
        hint = "Write a value that the field itself allows."
        reporter.add_error(f"schema-{key}", f"the {key} is invalid: {why}", hint, key, *path)
