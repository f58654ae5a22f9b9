"""Check the CEL expressions of webhooks and admission policies, which the API server compiles."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from capsmith.judge.checks.mismatches import Mismatch
from capsmith.manifests.parse import Manifest, has_variable, list_of, mapping_of, text_of
from capsmith.yamldoc.compose import Path
from capsmith.yamldoc.quote import quote

POLICIES = ("ValidatingAdmissionPolicy", "MutatingAdmissionPolicy")
_BOOL, _TEXT = "bool", "string"
_CHAIN = re.compile(r"\s*(?:object|oldObject|params)(\.\w+|\[[^]]*\])*\s*")
"""Expressions that only read a field of an object, and so have any type.

Variables of policies have the types of their expressions.
"""


class _Expression(NamedTuple):
    """An expression, and what it may read."""

    path: Path
    text: str
    result: str
    variables: tuple[str, ...] | None = None
    """Names of the variables that are defined before; None if there are none at this place."""
    has_params: bool = False


def find_expression_faults(manifest: Manifest) -> Iterator[Mismatch]:
    """Yield the expressions that the API server refuses, and why."""
    expressions = list(_list_policy(manifest) if manifest.kind in POLICIES else _list(manifest))
    for each in expressions:
        if not each.text or has_variable(each.text):
            continue
        message = _explain(each)
        if message:
            yield Mismatch(each.path, f"is refused: {message}")


def _explain(expression: _Expression) -> str:
    # Imported here because the CEL library is only needed, and loaded, for expressions.
    from capsmith.provider_yaml.cel.admission import find_expression_problems

    _, text, result, variables, has_params = expression
    problems = find_expression_problems(text, result, variables, has_params)
    # The expression may use a function that other releases of Kubernetes have.
    if any(problem.is_foreign or problem.undecided for problem in problems):
        return ""
    for problem in problems:
        # The types of values of objects are not known, and may be joined with others.
        is_unknown = quote("dyn") in problem.message and not _CHAIN.fullmatch(text)
        if not is_unknown and not (quote("dyn") in problem.message and result != _BOOL):
            return problem.message
    return ""


def _list(manifest: Manifest) -> Iterator[_Expression]:
    for number, hook in enumerate(manifest.listing("webhooks")):
        yield from _conditions(hook, ("webhooks", number), False)


def _conditions(parent: Any, path: Path, has_params: bool) -> Iterator[_Expression]:
    for number, each in enumerate(list_of(parent, "matchConditions")):
        here: Path = (*path, "matchConditions", number, "expression")
        yield _Expression(here, text_of(each, "expression"), _BOOL, None, has_params)


def _list_policy(manifest: Manifest) -> Iterator[_Expression]:
    spec = manifest.mapping("spec")
    has_params = bool(mapping_of(spec, "paramKind"))
    yield from _conditions(spec, ("spec",), has_params)
    names: tuple[str, ...] = ()
    for number, each in enumerate(list_of(spec, "variables")):
        path: Path = ("spec", "variables", number, "expression")
        yield _Expression(path, text_of(each, "expression"), "", names, has_params)
        names = (*names, text_of(each, "name"))
    if any(map(has_variable, names)):
        return
    for number, each in enumerate(list_of(spec, "validations")):
        path = ("spec", "validations", number)
        for key, result in (("expression", _BOOL), ("messageExpression", _TEXT)):
            yield _Expression((*path, key), text_of(each, key), result, names, has_params)
