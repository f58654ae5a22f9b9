"""Check the CEL rules in CRDs as the API server does when it creates a CRD."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from capsmith.cel_text import is_transition
from capsmith.judge.checks.registry import Context, Violation, check
from capsmith.manifests.parse import list_of, mapping_of
from capsmith.provider_yaml.rules import find_unknown_field, is_field_path
from capsmith.yamldoc.compose import Path
from capsmith.yamldoc.quote import quote

if TYPE_CHECKING:
    from capsmith.provider_yaml.cel.compile import Compiler, RuleProblem


RULES = "x-kubernetes-validations"
_INNER = frozenset({RULES, "properties", "additionalProperties", "items"})
_TEXT = {"type": "string"}
_OF_EVERY_OBJECT = {
    "apiVersion": _TEXT,
    "kind": _TEXT,
    "metadata": {"type": "object", "properties": {"name": _TEXT, "generateName": _TEXT}},
}
"""Fields of every object, which rules may read even if the schema does not declare them."""


class RulePlace(NamedTuple):
    """A schema in a CRD that contains CEL rules, and its path."""

    path: Path
    """Path from the root schema to this schema."""
    field: str
    """Path to the field as shown in messages, with dots, ``[]`` and ``{}``; empty for the root."""
    rules: list[Any]
    schema: Mapping[str, Any]
    """Types of all values that the rules may read, including fields common to all objects."""
    declared: Mapping[str, Any]
    """Types of the values that the CRD declares."""
    correlated: bool
    """Whether the API server can find the field's old value for transition rules."""


class _Step(NamedTuple):
    """A schema on the path from the root to a rule."""

    path: Path
    field: str
    correlated: bool

    def to(self, name: str, *path: str) -> _Step:
        return _Step((*self.path, *path), f"{self.field}{name}".removeprefix("."), self.correlated)


def find_rule_places(schema: Mapping[str, Any]) -> Iterator[RulePlace]:
    """Yield every schema in a CRD version that has CEL rules, parents before children."""
    if _is_deep(schema):
        yield from _below(schema, _Step((), "", True), True)


def _below(schema: dict[str, Any], here: _Step, is_object: bool) -> Iterator[RulePlace]:
    rules = list_of(schema, RULES)
    if rules:
        plain = keep_types(schema)
        types = _add_object_fields(plain) if is_object else plain
        yield RulePlace(here.path, here.field, rules, types, plain, here.correlated)
    properties = schema.get("properties")
    for name, part in properties.items() if isinstance(properties, dict) else ():
        # The API server does not accept rules in an object's metadata.
        if _is_deep(part) and not (is_object and name == "metadata"):
            child = here.to(f".{name}", "properties", str(name))
            yield from _below(part, child, _is_embedded(part))
    values, items = schema.get("additionalProperties"), schema.get("items")
    if _is_deep(values):
        yield from _below(values, here.to("{}", "additionalProperties"), _is_embedded(values))
    if _is_deep(items):
        # Only items of lists of type map have keys by which their old values can be found.
        in_map = here.correlated and schema.get("x-kubernetes-list-type") == "map"
        child = here.to("[]", "items")._replace(correlated=in_map)
        yield from _below(items, child, _is_embedded(items))


def _is_deep(schema: Any) -> TypeGuard[dict[str, Any]]:
    """Return whether a schema could contain rules at any depth; most fields could not."""
    return isinstance(schema, dict) and not _INNER.isdisjoint(schema)


def keep_types(schema: Any, is_object: bool = False) -> dict[str, Any]:
    """Return a schema reduced to the parts that determine types.

    If ``is_object`` is true, fields common to all objects, such as kind and metadata, are added.
    """
    kept: dict[str, Any] = {
        key: schema[key] for key in ("type", "format") if isinstance(schema.get(key), str)
    }
    if schema.get("x-kubernetes-int-or-string") is True:
        kept["x-kubernetes-int-or-string"] = True
    if isinstance(schema.get("properties"), Mapping):
        kept["properties"] = {
            name: keep_types(part, _is_embedded(part))
            for name, part in schema["properties"].items()
            if isinstance(name, str) and isinstance(part, Mapping)
        }
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), Mapping):
            kept[key] = keep_types(schema[key], _is_embedded(schema[key]))
    return _add_object_fields(kept) if is_object else kept


def _add_object_fields(types: dict[str, Any]) -> dict[str, Any]:
    # The API server declares these fields itself, regardless of the schema.
    return {**types, "properties": {**types.get("properties", {}), **_OF_EVERY_OBJECT}}


def _is_embedded(schema: Any) -> bool:
    return mapping_of(schema).get("x-kubernetes-embedded-resource") is True


_BREAK = re.compile(r"[\n\r]")
_TEXTS = ("rule", "message", "messageExpression", "fieldPath", "reason")
_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_KEPT_SCHEMAS = 256
_KEPT_RESULTS = 4096


class RuleFault(NamedTuple):
    """A reason why the API server would reject a CEL rule."""

    key: str
    message: str


@check("schema-rules", is_shared=True)
def check_schema_rules(context: Context) -> Iterator[Violation]:
    """CRD-23: The API server accepts all validation rules in all versions."""
    for crd in context.bundle.crds:
        for version in crd.versions:
            root = crd.schema_path(version.name)
            for place in find_rule_places(version.schema):
                for number, rule in enumerate(place.rules):
                    where = f"{crd.kind} {version.name}: {place.field or 'the object'}"
                    for fault in find_rule_faults(mapping_of(rule), place):
                        path = (*root, *place.path, RULES, number, fault.key)
                        yield Violation(crd.manifest, f"{where}: {fault.message}", path=path)


def find_rule_faults(rule: Mapping[str, Any], place: RulePlace) -> Iterator[RuleFault]:
    """Yield the reasons why the API server would reject a CEL rule.

    Expressions are compiled only if the rule has a valid form.  Calls to functions from other
    Kubernetes releases are accepted.
    """
    # For a rule of the wrong form, checking its expression would only repeat the same error.
    wrong = list(_form(rule, place))
    yield from wrong
    if not wrong:
        yield from _expressions(rule, place)


def _form(rule: Mapping[str, Any], place: RulePlace) -> Iterator[RuleFault]:
    odd = [key for key in _TEXTS if not isinstance(rule.get(key, ""), str)]
    if odd:
        yield RuleFault(odd[0], f"{odd[0]} of a rule is not a string")
        return
    expression, message = rule.get("rule", "").strip(), rule.get("message", "").strip()
    if not expression:
        yield RuleFault("rule", "the rule is empty")
        return
    for key in ("message", "messageExpression", "fieldPath"):
        if rule.get(key) and not rule[key].strip():
            yield RuleFault(key, f"{key} of rule {quote(expression)} is blank")
    if _BREAK.search(message):
        yield RuleFault("message", f"the message of rule {quote(expression)} must be a single line")
    elif _BREAK.search(expression) and not message:
        yield RuleFault("rule", f"rule {quote(expression)} has several lines but no message")
    reason = rule.get("reason")
    if reason is not None and reason not in _REASONS:
        expected = ", ".join(_REASONS)
        yield RuleFault(
            "reason", f"{quote(reason)} is not a valid reason; expected one of {expected}"
        )
    yield from _field_path(rule.get("fieldPath", ""), place)
    if is_transition(expression):
        if not place.correlated:
            where = "which items of this list do not have"
            yield RuleFault("rule", f"rule {quote(expression)} reads oldSelf, {where}")
    elif "optionalOldSelf" in rule:
        message = f"optionalOldSelf is set, but rule {quote(expression)} does not read oldSelf"
        yield RuleFault("optionalOldSelf", message)


def _field_path(path: str, place: RulePlace) -> Iterator[RuleFault]:
    if not path.strip():
        return
    if path[0] not in ".[":
        yield RuleFault("fieldPath", f"fieldPath {quote(path)} does not start with a dot")
    elif is_field_path(path) and (unknown := find_unknown_field(path, place.declared)):
        yield RuleFault("fieldPath", f"fieldPath names {quote(unknown.name)}, which is not a field")


def _expressions(rule: Mapping[str, Any], place: RulePlace) -> Iterator[RuleFault]:
    # Text is hashable, so equal schemas of a kind and its template are compiled only once.
    schema = json.dumps(place.schema)
    optional = rule.get("optionalOldSelf") is True
    for key, result in (("rule", "bool"), ("messageExpression", "string")):
        expression = rule.get(key, "")
        if not expression:
            continue
        problems = _problems(schema, expression, result, optional)
        # The expression may use a function of a newer Kubernetes than the library's, and be valid
        # there.
        if any(problem.is_foreign or problem.undecided for problem in problems):
            continue
        for problem in problems:
            what = "rule" if key == "rule" else "message expression"
            yield RuleFault(key, f"{what} {quote(expression)}: {problem.message}")


# Compiling is slow, and templates repeat their kinds' rules.
@lru_cache(_KEPT_RESULTS)
def _problems(
    schema: str, expression: str, result: str, optional_old_self: bool
) -> tuple[RuleProblem, ...]:
    """Return the problems of an expression, cached because templates repeat expressions."""
    return tuple(_compiler(schema).problems(expression, result, optional_old_self))


@lru_cache(_KEPT_SCHEMAS)
def _compiler(schema: str) -> Compiler:
    # Imported here because the CEL library is only needed, and loaded, for rules.
    from capsmith.provider_yaml.cel.compile import Compiler

    return Compiler.of(json.loads(schema))
