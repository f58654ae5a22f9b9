"""Check the defaults in a CRD version's schema against the schema itself.

Follows ``ValidateDefaults``: a default must be valid, contain only declared fields, and satisfy the
validation rules of its schema.  Defaults below additionalProperties are not checked, because the
API server does not check them either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from capsmith.judge.checks.apiextensions.model import Fault, Schema
from capsmith.judge.checks.validations import RULES, keep_types
from capsmith.manifests.parse import is_mapping, list_of, mapping_of, text_of
from capsmith.provider_yaml.values import find_value_errors
from capsmith.yamldoc.compose import Path
from capsmith.yamldoc.quote import quote

if TYPE_CHECKING:
    from capsmith.provider_yaml.cel.compile import Compiler


def find_default_faults(schema: Schema, path: Path = ()) -> Iterator[Fault]:
    """Yield the reasons why the API server would reject the defaults in a structural schema."""
    default = schema.get("default")
    if default is not None:
        where = (*path, "default")
        # Lists with duplicate items are refused only in objects, not in defaults.
        judged = _drop_list_types(schema) if isinstance(default, dict | list) else schema
        whole = _make_whole(default, schema)
        wrong = [reason for _, reason in find_value_errors(whole, judged)]
        for reason in wrong or find_broken_rules(default, schema):
            yield Fault(where, f"the default is invalid: {reason}")
    for name, part in mapping_of(schema, "properties").items():
        if is_mapping(part) and len(part) > 1:
            yield from find_default_faults(part, (*path, "properties", str(name)))
    items = schema.get("items")
    if is_mapping(items):
        yield from find_default_faults(items, (*path, "items"))


def _make_whole(value: Any, schema: Any) -> Any:
    """Return a value in which numbers such as 3.0 are integers where the schema requires that."""
    if isinstance(value, float) and text_of(schema, "type") == "integer" and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_make_whole(each, mapping_of(schema, "items")) for each in value]
    if not isinstance(value, dict):
        return value
    properties = mapping_of(schema, "properties")
    others = mapping_of(schema, "additionalProperties")
    return {key: _make_whole(each, properties.get(key, others)) for key, each in value.items()}


def _drop_list_types(schema: Any) -> Any:
    if isinstance(schema, Mapping):
        kept = {key: part for key, part in schema.items() if key != "x-kubernetes-list-type"}
        return {key: _drop_list_types(part) for key, part in kept.items()}
    return [_drop_list_types(part) for part in schema] if isinstance(schema, list) else schema


def find_broken_rules(value: Any, schema: Schema) -> Iterator[str]:
    """Yield a message for each validation rule that ``value``, or a value inside it, violates.

    Rules that do not compile or call unknown functions are skipped.
    """
    rules = [rule for rule in list_of(schema, RULES) if isinstance(rule, Mapping)]
    # The conversion to CEL fails for other values, although the type may be another.
    if rules and schema.get("x-kubernetes-int-or-string") and not isinstance(value, int | str):
        yield "it must be an integer or a string for its rules"
    elif rules:
        for rule in list_broken(rules, value, create_compiler(schema)):
            yield f"it violates the rule {quote(text_of(rule, 'rule'))}"
    if isinstance(value, Mapping):
        properties, rest = mapping_of(schema, "properties"), mapping_of(
            schema, "additionalProperties"
        )
        for name, below in value.items():
            yield from find_broken_rules(below, mapping_of(properties.get(name, rest)))
    elif isinstance(value, list):
        for item in value:
            yield from find_broken_rules(item, mapping_of(schema, "items"))


def list_broken(
    rules: Sequence[Mapping[str, Any]], value: Any, compiler: Compiler
) -> list[Mapping[str, Any]]:
    """Return the rules that ``value`` violates; ``compiler`` is that of its schema."""
    broken = []
    for rule in rules:
        text = text_of(rule, "rule")
        is_optional = rule.get("optionalOldSelf") is True
        # Nearly all values keep the rules, and to compile a rule with types takes much longer.
        if not compiler.is_broken_by(text, value, is_optional):
            continue
        if not compiler.problems(text, optional_old_self=is_optional):
            broken.append(rule)
    return broken


def create_compiler(schema: Schema) -> Compiler:
    """Return a compiler for the rules of a schema."""
    # Imported here because the CEL library is only needed, and loaded, for rules.
    from capsmith.provider_yaml.cel.compile import Compiler

    return Compiler.of(keep_types(schema))
