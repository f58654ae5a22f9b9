"""Check the CEL expressions of webhooks and admission policies, which the API server compiles."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from capsmith.cel_text import PATCH_VALUE
from capsmith.judge.checks.mismatches import Mismatch
from capsmith.judge.checks.patch_expressions import OBJECT, PATCH, PatchExpression, read_patch
from capsmith.manifests.parse import Manifest, has_variable, list_of, mapping_of, text_of
from capsmith.yamldoc.compose import Path
from capsmith.yamldoc.quote import quote

if TYPE_CHECKING:
    from capsmith.provider_yaml.cel.admission import Variables
    from capsmith.provider_yaml.cel.compile import RuleProblem

POLICIES = ("ValidatingAdmissionPolicy", "MutatingAdmissionPolicy")
_BOOL, _TEXT, _TEXT_OR_NULL = ("bool",), ("string",), ("string", "null")
_PATCHES = ("applyConfiguration", "jsonPatch")
_PATCH_NAME = re.compile(r"\b(?:Object|JSONPatch|jsonpatch)\b")
_OF_PATCHES = re.compile(
    r"`(?:(?:Object|JSONPatch)(?:\..+)?|jsonpatch|escapeKey)` is not a variable"
)
"""Problems with what only the expressions of patches may use, and the CEL library does not know."""
_CALLED = "the API server evaluates the expression for a request"
_CERTAIN = re.compile(r"the rule is not a valid|`[^`]+` is not a (?:variable or function|field)")
"""Problems of expressions of patches that do not depend on the types of what they create."""


class _Expression(NamedTuple):
    """An expression, and what it may read."""

    path: Path
    text: str
    results: tuple[str, ...] = ()
    """Types of which it has to return one; empty if it may return any."""
    variables: Variables | None = None
    """The variables that are defined before; None if there are none at this place."""
    has_params: bool = False
    has_authorizer: bool = True
    has_patches: bool = False
    """Whether the text has values in place of a JSONPatch."""


def find_expression_faults(manifest: Manifest) -> Iterator[Mismatch]:
    """Yield the expressions that the API server refuses, and why."""
    expressions = _list_policy(manifest) if manifest.kind in POLICIES else _list(manifest)
    for each in expressions:
        if not each.text or has_variable(each.text):
            continue
        if each.path[-2] in _PATCHES:
            yield from _find_patch_faults(each)
        elif message := _explain(each):
            yield Mismatch(each.path, f"is refused: {message}")


def _find_problems(expression: _Expression) -> Sequence[RuleProblem]:
    # Imported here because the CEL library is only needed, and loaded, for expressions.
    from capsmith.provider_yaml.cel.admission import find_expression_problems

    return find_expression_problems(*expression[1:])


def _explain(expression: _Expression) -> str:
    problems = _find_problems(expression)
    for problem in problems if not expression.has_authorizer else ():
        if problem.message.startswith("`authorizer"):
            return "`authorizer` cannot be read here"
    # The expression may use a function that other releases of Kubernetes have.
    if any(problem.is_foreign or problem.undecided for problem in problems):
        return ""
    for problem in problems:
        # The types of values of objects are not known, and may be joined with others.
        is_result = problem.message.startswith("the expression evaluates to")
        if is_result or quote("dyn") not in problem.message:
            return problem.message
    return ""


def _find_patch_faults(each: _Expression) -> Iterator[Mismatch]:
    """Yield why the API server refuses an expression of a patch, or later the requests."""
    is_list = each.path[-2] == _PATCHES[1]
    patch = read_patch(each.text)
    message = _explain_patch(each, patch, is_list)
    if message:
        yield Mismatch(each.path, f"is refused: {message}")
    for created in () if message else patch.objects:
        if created.expected not in ("", created.name):
            message = f"creates a value of {created.expected} as {created.name}"
            yield Mismatch(each.path, message, when=_CALLED)


def _explain_patch(expression: _Expression, patch: PatchExpression, is_list: bool) -> str:
    """Return why the API server refuses the expression of a patch."""
    problems = _find_problems(expression)
    for problem in problems:
        if problem.is_foreign or problem.undecided or _OF_PATCHES.match(problem.message):
            continue
        if _CERTAIN.match(problem.message):
            return problem.message
    if not patch.is_read:
        return ""
    if patch.unknown:
        return f"`{patch.unknown[0]}` is not a field of {PATCH}"
    # What is created has any type here, and whole expressions are judged below.
    rewritten = expression._replace(text=patch.rewritten, results=(), has_patches=True)
    message = _explain(rewritten)
    if message:
        return message
    if _explain(rewritten._replace(text=patch.typed)):
        return f"op, path and from of a {PATCH} have to be texts"
    expected = f"a list of {PATCH}" if is_list else f"an {OBJECT}"
    if _is_of_another_type(rewritten, patch, is_list):
        return f"the expression does not evaluate to {expected}"
    # A variable may be of the type that is expected.
    uses_patches = _PATCH_NAME.search(expression.text) is not None
    if problems or uses_patches or "variables" in expression.text:
        return ""
    return f"the expression does not evaluate to {expected}"


def _is_of_another_type(rewritten: _Expression, patch: PatchExpression, is_list: bool) -> bool:
    """Return whether an expression is certain to evaluate to a value of another type."""
    if patch.result and patch.result != ("list" if is_list else OBJECT):
        return True
    from capsmith.provider_yaml.cel.admission import find_type

    variables, has_params = rewritten.variables, rewritten.has_params
    name, item = (
        find_type(text, variables, has_params, has_patches=True)
        for text in (rewritten.text, PATCH_VALUE)
    )
    # What creates an Object has any type here, as what reads one has.
    return name not in ("", "dyn", *((f"list<{item}>", "list<dyn>") if is_list else ()))


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
    variables: Variables = ()
    for number, each in enumerate(list_of(spec, "variables")):
        path: Path = ("spec", "variables", number, "expression")
        text = text_of(each, "expression")
        yield _Expression(path, text, (), variables, has_params)
        variables = (
            *variables,
            (text_of(each, "name"), _find_type(text, variables, has_params)),
        )
    if any(has_variable(name) for name, _ in variables):
        return
    for number, each in enumerate(list_of(spec, "validations")):
        path = ("spec", "validations", number)
        text = text_of(each, "expression")
        yield _Expression((*path, "expression"), text, _BOOL, variables, has_params)
        text = text_of(each, "messageExpression")
        path = (*path, "messageExpression")
        yield _Expression(path, text, _TEXT, variables, has_params, False)
    for number, each in enumerate(list_of(spec, "auditAnnotations")):
        path = ("spec", "auditAnnotations", number, "valueExpression")
        text = text_of(each, "valueExpression")
        yield _Expression(path, text, _TEXT_OR_NULL, variables, has_params)
    for number, each in enumerate(list_of(spec, "mutations")):
        for key in _PATCHES:
            path = ("spec", "mutations", number, key, "expression")
            yield _Expression(path, text_of(each, key, "expression"), (), variables, has_params)


def _find_type(text: str, variables: Variables, has_params: bool) -> str:
    from capsmith.provider_yaml.cel.admission import find_type

    return find_type(text, variables, has_params) if text and not has_variable(text) else ""
