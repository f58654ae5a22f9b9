"""Compile the CEL expressions of webhooks and admission policies as the API server does.

Objects have any type there, so only requests and the variables of a policy have known fields.
Importing this module loads the CEL library, as `compile` does.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from capsmith.cel_text import PATCH_VALUE
from capsmith.provider_yaml.cel.compile import Compiler, RuleProblem
from capsmith.provider_yaml.cel.environment import CelType, Declarations
from capsmith.yamldoc.quote import quote

_ANY: CelType = {"type_name": "dyn"}
_TEXT = {"type": "string"}
_DYNAMIC = {"x-kubernetes-int-or-string": True}
_OBJECTS = ("object", "oldObject", "namespaceObject", "authorizer")


def _names(*names: str) -> dict[str, Any]:
    return {"type": "object", "properties": dict.fromkeys(names, _TEXT)}


_GROUPED = _names("group", "version", "kind"), _names("group", "version", "resource")
_REQUEST = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("kind", "requestKind"), _GROUPED[0]),
        **dict.fromkeys(("resource", "requestResource"), _GROUPED[1]),
        **dict.fromkeys(
            ("name", "namespace", "operation", "requestSubResource", "subResource", "uid"), _TEXT
        ),
        "dryRun": {"type": "boolean"},
        "options": _DYNAMIC,
        "userInfo": {
            "type": "object",
            "properties": {
                "username": _TEXT,
                "uid": _TEXT,
                "groups": {"type": "array", "items": _TEXT},
                "extra": {
                    "type": "object",
                    "additionalProperties": {"type": "array", "items": _TEXT},
                },
            },
        },
    },
}
"""Fields of an AdmissionRequest that expressions may read."""
_PATCH = {
    "type": "object",
    "properties": {**dict.fromkeys(("op", "path", "from"), _TEXT), "value": _DYNAMIC},
}
"""Fields of a JSONPatch."""


Variables = tuple[tuple[str, str], ...]
"""Names of variables, each with the name of its type; empty if it is not known."""
_TYPES = {
    **{"string": _TEXT, "bool": {"type": "boolean"}},
    **{"int": {"type": "integer"}, "double": {"type": "number"}},
}
_LESS_KNOWN = re.compile(r"\b(?:namespaceObject|authorizer|extra)\b")
"""Names whose values have types that are not declared here."""
_VARIABLE = re.compile(r"\bvariables\s*\.\s*(\w+)")
_ANY_TYPE = "dyn"


@lru_cache(64)
def find_expression_problems(
    expression: str,
    results: tuple[str, ...],
    variables: Variables | None,
    has_params: bool,
    has_authorizer: bool = True,
    has_patches: bool = False,
) -> tuple[RuleProblem, ...]:
    """Return the reasons why the API server refuses an expression.

    ``results`` are the types of which it must return one; empty if it may return any.
    ``variables`` are those that a policy has defined before; None in a webhook, which has none.
    If ``has_patches`` is true, a variable has the type of a JSONPatch.
    """
    problems, name = _compile(expression, variables, has_params, has_authorizer, has_patches)
    if problems or not results:
        return problems
    name = _hide_unknown(name, expression, variables)
    if not name or name in results:
        return ()
    expected = " or ".join(map(quote, results))
    message = f"the expression evaluates to {quote(name)}, not {expected}"
    return (RuleProblem(message, f"Write an expression that evaluates to a {results[0]}."),)


def find_type(
    expression: str, variables: Variables | None, has_params: bool, has_patches: bool = False
) -> str:
    """Return the type of what an expression returns; empty if it is not known here."""
    _, name = _compile(expression, variables, has_params, True, has_patches)
    return _hide_unknown(name, expression, variables)


@lru_cache(64)
def _compile(
    expression: str,
    variables: Variables | None,
    has_params: bool,
    has_authorizer: bool,
    has_patches: bool,
) -> tuple[tuple[RuleProblem, ...], str]:
    compiler = _create_compiler(variables, has_params, has_authorizer, has_patches)
    problems, name = compiler.compile(expression)
    return tuple(problems), name


def _hide_unknown(name: str, expression: str, variables: Variables | None) -> str:
    """Return the name of an expression's type; empty if the expression reads unknown types."""
    unknown = {each for each, type in variables or () if not type}
    has_unknown = not unknown.isdisjoint(_VARIABLE.findall(expression))
    return "" if name == _ANY_TYPE and (has_unknown or _LESS_KNOWN.search(expression)) else name


@lru_cache(16)
def _create_compiler(
    variables: Variables | None, has_params: bool, has_authorizer: bool, has_patches: bool
) -> Compiler:
    declarations = Declarations()
    known = dict.fromkeys(_OBJECTS, _ANY)
    if not has_authorizer:
        del known["authorizer"]
    request = declarations.declare(_REQUEST)
    assert request is not None
    known["request"] = request
    if has_params:
        known["params"] = _ANY
    if has_patches:
        patch = declarations.declare(_PATCH)
        assert patch is not None
        known[PATCH_VALUE] = patch
    if variables is not None:
        properties = {name: _TYPES.get(type, _DYNAMIC) for name, type in variables}
        declared = declarations.declare({"type": "object", "properties": properties})
        assert declared is not None
        known["variables"] = declared
    return Compiler.with_variables(declarations, known)
