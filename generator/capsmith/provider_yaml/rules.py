"""Check CEL rules and their field paths, without evaluating the rules."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from capsmith.cel_text import is_transition, strip_literals
from capsmith.yamldoc.quote import quote, suggest

if TYPE_CHECKING:
    from capsmith.provider_yaml.cel.compile import RuleProblem
    from capsmith.provider_yaml.forms import FieldSchema, Validation
    from capsmith.yamldoc.document import PathReporter


_STEP = re.compile(r"\.([^.\[\]'\s]+)|\['((?:\\'|[^'\n])+)'\]")
_FIELD_PATH = re.compile(f"(?:{_STEP.pattern})+")


class UnknownField(NamedTuple):
    """A step in a field path that is not a declared property, and the names that are declared."""

    name: str
    known: tuple[str, ...]


def is_field_path(text: str) -> bool:
    """Return whether ``text`` has the form of a ``fieldPath``: ``.cidr`` or ``['a.b']``."""
    return _FIELD_PATH.fullmatch(text) is not None


def find_unknown_field(path: str, schema: Mapping[str, Any]) -> UnknownField | None:
    """Return the first step of a ``fieldPath`` that the schema does not declare, or None."""
    for step in _STEP.finditer(path):
        name = (step[1] or step[2]).replace("\\'", "'")
        properties = schema.get("properties")
        if properties is None and "additionalProperties" in schema:
            schema = schema["additionalProperties"]
        elif properties is None or name not in properties:
            return UnknownField(name, tuple(properties or ()))
        else:
            schema = properties[name]
    return None


def check_rules(field: FieldSchema, schema: Mapping[str, Any], reporter: PathReporter) -> None:
    """Check a field's ``immutable`` and ``x-kubernetes-validations`` against its ``schema``."""
    if field.immutable:
        _transition(reporter.at("immutable"))
    rules = field.validations or ()
    for index, rule in enumerate(rules):
        rule_place = reporter.at("x-kubernetes-validations", index)
        check_form(rule, rule_place)
        if is_transition(rule.rule):
            _transition(rule_place)
    numbered = list(enumerate(rules))
    check_expressions(numbered, schema, reporter.at("x-kubernetes-validations"))
    _check_default(field, schema, reporter)
    if (rules or field.immutable) and not reporter.bounded:
        _report_cost(field, schema, reporter)


# The cost grows with the size of the compared or searched value; for whole objects, the API server
# assumes a constant.
_COSTLY = re.compile(
    r"(?<![\w.])(?:self\s*[!=]=\s*oldSelf|oldSelf\s*[!=]=\s*self)(?![\w.\[(])"
    r"|(?<![\w.])self\s*\.\s*(?:contains|matches)\s*\("
)
_SHORT_FORMATS = frozenset({"date", "date-time", "duration"})
"""String formats for which the API server assumes a maximum length."""


def _report_cost(field: FieldSchema, schema: Mapping[str, Any], reporter: PathReporter) -> None:
    """Report ``schema-unbounded-rule`` for rules inside an unbounded list or map.

    An error if the API server certainly refuses them: as many values as fit into a request, each of
    any size, exceed its limit by more than a factor of 100.
    """
    rules = field.validations or ()
    costly = [i for i, rule in enumerate(rules) if _COSTLY.search(strip_literals(rule.rule))]
    hint = "Set maxItems on lists and maxProperties on maps"
    if _has_any_size(schema) and (field.immutable or costly):
        key = ("immutable",) if field.immutable else ("x-kubernetes-validations", costly[0])
        message = "a rule on a value of any size inside an unbounded list or map costs too much"
        reporter.add_error("schema-unbounded-rule", message, f"{hint} around it.", *key)
        return
    reporter.add_warning(
        "schema-unbounded-rule",
        "a rule inside an unbounded list or map may exceed the cost limit",
        f"{hint}, or the API server may refuse it.",
        "x-kubernetes-validations" if rules else "immutable",
    )


def _has_any_size(schema: Mapping[str, Any]) -> bool:
    """Return whether the schema is of strings or lists without a maximum size."""
    if schema.get("enum"):
        return False
    if schema.get("type") == "array":
        return "maxItems" not in schema
    is_string = schema.get("type") == "string" or schema.get("x-kubernetes-int-or-string")
    is_short = "maxLength" in schema or schema.get("format") in _SHORT_FORMATS
    return bool(is_string) and not is_short


def check_form(rule: Validation, reporter: PathReporter) -> None:
    """Check the parts of a rule that do not depend on its schema. Finding id: ``schema-rule``."""
    if not rule.rule.strip():
        reporter.add_error("schema-rule", "the rule is empty", "Write a CEL expression.", "rule")
    if "\n" in rule.rule.strip() and not rule.message:
        message = "a multi-line rule requires a message"
        reporter.add_error(
            "schema-rule", message, "Add `message:`, which is shown to the user.", "rule"
        )
    if rule.message is not None and "\n" in rule.message.strip():
        reporter.add_error(
            "schema-rule", "a message must be a single line", "Write it on one line.", "message"
        )
    if rule.field_path is not None and not is_field_path(rule.field_path):
        message = "fieldPath must be a path relative to this field, such as `.cidr`"
        reporter.add_error("schema-rule", message, "Start it with a dot.", "fieldPath")
    if rule.optional_old_self is not None and not is_transition(rule.rule):
        message = "optionalOldSelf requires a rule that reads oldSelf"
        reporter.add_error("schema-rule", message, "Remove it.", "optionalOldSelf")


def check_expressions(
    rules: Sequence[tuple[int, Validation]], schema: Mapping[str, Any], reporter: PathReporter
) -> None:
    """Compile rules against their schema, and report errors that the API server would report.

    Each rule comes with its index in the list at the reporter's path.  Finding ids: ``schema-rule``
    and ``schema-rule-unchecked``.
    """
    if not rules:
        return
    # Imported here because the CEL library is only needed, and loaded, for rules.
    from capsmith.provider_yaml.cel.compile import Compiler

    compiler = Compiler.of(schema)
    for index, rule in rules:
        here = reporter.at(index)
        optional = bool(rule.optional_old_self)
        if rule.rule.strip():
            _report(compiler.problems(rule.rule, "bool", optional), here.at("rule"))
        if rule.message_expression is not None:
            expression = here.at("messageExpression")
            _report(compiler.problems(rule.message_expression, "string", optional), expression)
        if rule.field_path is not None and is_field_path(rule.field_path):
            _check_field_path(rule.field_path, schema, here)


def _check_default(field: FieldSchema, schema: Mapping[str, Any], reporter: PathReporter) -> None:
    """Report ``schema-default`` for a default that violates the field's own rules."""
    rules = field.validations or ()
    if not rules or field.default is None:
        return
    # Imported here because the CEL library is only needed, and loaded, for rules.
    from capsmith.provider_yaml.cel.compile import Compiler

    compiler = Compiler.of(schema)
    for rule in rules:
        is_optional = bool(rule.optional_old_self)
        if compiler.problems(rule.rule, optional_old_self=is_optional):
            continue
        if compiler.is_broken_by(rule.rule, field.default, is_optional):
            message = f"the default is invalid: it violates the rule {quote(rule.rule)}"
            hint = "Write a value that the field itself allows."
            reporter.add_error("schema-default", message, hint, "default")


def _report(problems: Iterable[RuleProblem], reporter: PathReporter) -> None:
    for problem in problems:
        if problem.undecided:
            reporter.add_warning("schema-rule-unchecked", problem.message, problem.hint)
        else:
            where = (problem.line, problem.column) if problem.line > 0 else None
            reporter.add_error_inside("schema-rule", problem.message, problem.hint, where)


def _check_field_path(path: str, schema: Mapping[str, Any], reporter: PathReporter) -> None:
    unknown = find_unknown_field(path, schema)
    if unknown is not None:
        message = f"fieldPath names {quote(unknown.name)}, which is not a field of this object"
        reporter.add_error(
            "schema-rule", message, suggest(unknown.name, unknown.known), "fieldPath"
        )


def _transition(reporter: PathReporter) -> None:
    if not reporter.correlated:
        reporter.add_error(
            "schema-transition-in-list",
            "the API server cannot match old and new items of this list",
            "Put the rule on the list, or make it `x-kubernetes-list-type: map` with keys.",
        )
