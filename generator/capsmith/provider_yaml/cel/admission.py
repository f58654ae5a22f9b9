"""Compile the CEL expressions of webhooks and admission policies as the API server does.

Objects have any type there, so only requests and the variables of a policy have known fields.
Importing this module loads the CEL library, as `compile` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from capsmith.provider_yaml.cel.compile import Compiler, RuleProblem
from capsmith.provider_yaml.cel.environment import CelType, Declarations

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


@lru_cache(64)
def find_expression_problems(
    expression: str, result: str, variables: Sequence[str] | None, has_params: bool
) -> tuple[RuleProblem, ...]:
    """Return the reasons why the API server refuses an expression.

    ``result`` is the type that it must return; empty if it may return any.  ``variables`` are the
    names that a policy has defined before; None in a webhook, which has none.
    """
    declarations = Declarations()
    known = dict.fromkeys(_OBJECTS, _ANY)
    request = declarations.declare(_REQUEST)
    assert request is not None
    known["request"] = request
    if has_params:
        known["params"] = _ANY
    if variables is not None:
        fields = {"type": "object", "properties": dict.fromkeys(variables, _DYNAMIC)}
        declared = declarations.declare(fields)
        assert declared is not None
        known["variables"] = declared
    return tuple(Compiler.with_variables(declarations, known).problems(expression, result))
