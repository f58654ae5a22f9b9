"""Validation rules of CRDs, as the API server checks them when a CRD is created."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from capsmith.cel_text import is_transition
from capsmith.judge.rules.checks.registry import Context, Problem, check
from capsmith.judge.rules.rule_places import RULES, RulePlace, rule_places
from capsmith.manifests.parse import mapping_of
from capsmith.provider_yaml.rules import is_field_path, unknown_field
from capsmith.yamldoc.quote import shown

if TYPE_CHECKING:
    from capsmith.provider_yaml.cel.compile import Compiler, RuleProblem

_BREAK = re.compile(r"[\n\r]")
_TEXTS = ("rule", "message", "messageExpression", "fieldPath", "reason")
_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_KEPT_SCHEMAS = 256
_KEPT_RESULTS = 4096


class Fault(NamedTuple):
    """What the API server refuses in a rule."""

    key: str
    message: str


@check("schema-rules")
def schema_rules(context: Context) -> Iterator[Problem]:
    """CRD-23: the API server takes every validation rule of every version."""
    for crd in context.bundle.crds:
        for version in crd.versions:
            root = crd.schema_path(version.name)
            for place in rule_places(version.schema):
                for number, rule in enumerate(place.rules):
                    where = f"{crd.kind} {version.name}: {place.field or 'the object'}"
                    for fault in faults(mapping_of(rule), place):
                        path = (*root, *place.path, RULES, number, fault.key)
                        yield Problem(crd.manifest, f"{where}: {fault.message}", path=path)


def faults(rule: Mapping[str, Any], place: RulePlace) -> Iterator[Fault]:
    """Yield what the API server refuses in a rule; expressions only if their form is right.

    An expression that calls a function of another release of Kubernetes passes.
    """
    wrong = list(_form(rule, place))
    yield from wrong
    if not wrong:
        yield from _expressions(rule, place)


def _form(rule: Mapping[str, Any], place: RulePlace) -> Iterator[Fault]:
    odd = [key for key in _TEXTS if not isinstance(rule.get(key, ""), str)]
    if odd:
        yield Fault(odd[0], f"{odd[0]} of a rule is not a string")
        return
    expression, message = rule.get("rule", "").strip(), rule.get("message", "").strip()
    if not expression:
        yield Fault("rule", "the rule is empty")
        return
    for key in ("message", "messageExpression", "fieldPath"):
        if rule.get(key) and not rule[key].strip():
            yield Fault(key, f"{key} of rule {shown(expression)} is blank")
    if _BREAK.search(message):
        yield Fault("message", f"the message of rule {shown(expression)} must be a single line")
    elif _BREAK.search(expression) and not message:
        yield Fault("rule", f"rule {shown(expression)} has several lines but no message")
    reason = rule.get("reason")
    if reason is not None and reason not in _REASONS:
        expected = ", ".join(_REASONS)
        yield Fault("reason", f"{shown(reason)} is not a valid reason; expected one of {expected}")
    yield from _field_path(rule.get("fieldPath", ""), place)
    if is_transition(expression):
        if not place.correlated:
            where = "which items of this list do not have"
            yield Fault("rule", f"rule {shown(expression)} reads oldSelf, {where}")
    elif "optionalOldSelf" in rule:
        message = f"optionalOldSelf is set, but rule {shown(expression)} does not read oldSelf"
        yield Fault("optionalOldSelf", message)


def _field_path(path: str, place: RulePlace) -> Iterator[Fault]:
    if not path.strip():
        return
    if path[0] not in ".[":
        yield Fault("fieldPath", f"fieldPath {shown(path)} does not start with a dot")
    elif is_field_path(path) and (unknown := unknown_field(path, place.declared)):
        yield Fault("fieldPath", f"fieldPath names {shown(unknown.name)}, which is not a field")


def _expressions(rule: Mapping[str, Any], place: RulePlace) -> Iterator[Fault]:
    schema = json.dumps(place.schema)
    optional = rule.get("optionalOldSelf") is True
    for key, result in (("rule", "bool"), ("messageExpression", "string")):
        expression = rule.get(key, "")
        if not expression:
            continue
        problems = _problems(schema, expression, result, optional)
        if any(problem.is_foreign or problem.undecided for problem in problems):
            continue
        for problem in problems:
            what = "rule" if key == "rule" else "message expression"
            yield Fault(key, f"{what} {shown(expression)}: {problem.message}")


@lru_cache(_KEPT_RESULTS)
def _problems(
    schema: str, expression: str, result: str, optional_old_self: bool
) -> tuple[RuleProblem, ...]:
    """Return the problems of an expression: an object and its template often have the same ones."""
    return tuple(_compiler(schema).problems(expression, result, optional_old_self))


@lru_cache(_KEPT_SCHEMAS)
def _compiler(schema: str) -> Compiler:
    # Imported here because the CEL library is only needed, and loaded, for rules.
    from capsmith.provider_yaml.cel.compile import Compiler

    return Compiler.of(json.loads(schema))
