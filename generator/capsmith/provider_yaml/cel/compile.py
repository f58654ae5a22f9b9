"""Compile CEL rules against their schema, and report errors as the API server would.

Importing this module loads the CEL library, which takes longer than all other checks together.
Import it only if there is a rule to compile.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from typing import Any

from cel_expr_python import cel

from capsmith.cel_text import LITERAL, strip_literals
from capsmith.provider_yaml.cel.environment import RELEASE, CelType, Declarations, build_environment
from capsmith.provider_yaml.cel.literals import find_literal_faults
from capsmith.provider_yaml.patterns import explain_refusal
from capsmith.provider_yaml.string_formats import is_duration, is_timestamp
from capsmith.yamldoc.quote import clip, quote, suggest

_STANDARD = """
    all contains endsWith exists exists_one filter getDate getDayOfMonth getDayOfWeek getDayOfYear
    getFullYear getHours getMilliseconds getMinutes getMonth getSeconds map matches size startsWith
"""
_METHODS = frozenset(_STANDARD.split())
"""Methods of CEL's standard types, which are not declared in any function library."""


def may_be_function(name: str, expression: str) -> bool:
    """Return whether an undeclared name could be a function of a newer Kubernetes release.

    Newer releases add CEL functions, but never variables.
    """
    text = strip_literals(expression)
    last = re.escape(name.rpartition(".")[2])
    if re.search(rf"(?<!\w){last}\s*\(", text):
        return True
    methods = re.findall(rf"(?<![\w.]){re.escape(name)}(?:\s*\.\s*\w+)*\s*\.\s*(\w+)\s*\(", text)
    return any(method not in _METHODS for method in methods)


_CALL = re.compile(r"(?:(\.\s*matches)|(?<![\w.])(duration|timestamp))\s*\(\s*")
_END = re.compile(r"\s*\)")


def check_literals(expression: str) -> list[RuleProblem]:
    """Return a problem for each literal that cannot be converted, such as a bad duration."""
    return list(_check(expression))


def _check(expression: str) -> Iterator[RuleProblem]:
    # The library compiles invalid literals, which are only detected when a rule is evaluated.
    # Calls are found once by their end: a search before each literal would take quadratic time.
    calls = {call.end(): call for call in _CALL.finditer(expression)}
    line, counted = 1, 0
    for literal in LITERAL.finditer(expression):
        call = calls.get(literal.start())
        if call is None or not _END.match(expression, literal.end()):
            continue
        text = _text(literal)
        if text is None:
            continue
        line += expression.count("\n", counted, literal.start())
        counted = literal.start()
        place = (line, counted - expression.rfind("\n", 0, counted))
        if call[1] and (why := explain_refusal(text)):
            hint = "Use the syntax of RE2: https://github.com/google/re2/wiki/Syntax."
            yield RuleProblem(
                f"the pattern is not a valid RE2 regular expression: {why}", hint, *place
            )
        if call[2] == "duration" and not is_duration(text):
            yield RuleProblem(f"{quote(text)} is not a duration", "Write it like '1h30m'.", *place)
        if call[2] == "timestamp" and not is_timestamp(text):
            hint = "Write it like '2030-01-01T00:00:00Z'."
            yield RuleProblem(f"{quote(text)} is not a timestamp", hint, *place)


_TWO_VARIABLES = re.compile(r"\.exists_one(\s*\(\s*\w+\s*,\s*\w+\s*,)")


def _rename_macros(expression: str) -> str:
    """Return an expression with the library's name of a macro that cel-go also calls exists_one.

    All positions stay the same.
    """
    return _TWO_VARIABLES.sub(r".existsOne \1", expression)


def _check_compiled(compiled: cel.Expression, expression: str) -> Iterator[RuleProblem]:
    for offset, message, hint in find_literal_faults(compiled.serialize()):
        line = expression.count("\n", 0, offset) + 1
        yield RuleProblem(message, hint, line, offset - expression.rfind("\n", 0, offset))


def _text(literal: re.Match[str]) -> str | None:
    """Return the string value of a literal; None for comments, bytes and literals with escapes."""
    bodies = [literal[name] for name in ("d3", "s3", "d", "s") if literal[name] is not None]
    prefix = (literal["prefix"] or "").lower()
    if not bodies or "b" in prefix or ("\\" in bodies[0] and "r" not in prefix):
        return None
    return str(bodies[0])


# The library reports errors as one string, in cel-cpp's format: `ERROR: <input>:line:column: text`,
# followed by the source and a caret, which are skipped.
_ISSUE = re.compile(r"^(?:\w+: )?ERROR: <input>:(-?\d+):(-?\d+): (.*)$", re.MULTILINE)
_UNKNOWN_FIELD = re.compile(r"undefined field '(\w+)' not found in struct '([\w.]+)'")
_UNDECLARED = re.compile(r"undeclared reference to '([^']*)'")
_NO_OVERLOAD = re.compile(r"found no matching overload for '([^']+)' applied to '(.+)'")
_MESSAGE = re.compile(r"(?:capsmith|google\.protobuf)\.([A-Z][a-z]+)\d*")
_OPERATOR = re.compile(r"_?([^\w]+)_")
# This is the library's own limit and says nothing about API servers, which allow deeper rules.
_TOO_DEEP = re.compile(r"recursion (?:limit|depth)", re.IGNORECASE)
_MISSING = re.compile(r"missing '([^']+)' at '(.+)'")
_UNEXPECTED = re.compile(
    r"(?:token recognition error at: |mismatched input |extraneous input |no viable alternative at "
    r"input )'(.+)'"
)
_FUNCTIONS = f"Use `self`, `oldSelf` and the functions of Kubernetes {RELEASE}."
_MOST_PROBLEMS = 5
_LONGEST = 100_000
"""Limit of cel-go in code points, which API servers do not change."""
_NO_METHOD = "No matching overloads found"
"""Part of the result of an expression that calls a method of another type."""


@dataclass(frozen=True, slots=True)
class Compiler:
    """Compiles CEL rules against one schema, with the same errors as the API server."""

    _declarations: Declarations
    _self_type: CelType | None
    _variables: Mapping[str, CelType] | None = None
    """Types of all variables, if they are not those of a rule."""
    _environments: dict[bool, cel.Env] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, schema: Mapping[str, Any]) -> Compiler:
        """Create a compiler for the CEL rules in ``schema``."""
        declarations = Declarations()
        return cls(declarations, declarations.declare(schema))

    @classmethod
    def with_variables(
        cls, declarations: Declarations, variables: Mapping[str, CelType]
    ) -> Compiler:
        """Create a compiler for expressions with the given variables, and no others."""
        return cls(declarations, None, variables)

    def problems(
        self, expression: str, result: str = "bool", optional_old_self: bool = False
    ) -> list[RuleProblem]:
        """Return the reasons why the API server would reject ``expression``, in source order.

        ``result`` is the type that the expression must return.  If ``optional_old_self`` is true,
        ``oldSelf`` is an optional value.
        """
        found, name = self.compile(expression, optional_old_self)
        # The library compares types by name, so a result of any type needs a type of its own.
        if not name or name == result:
            return found
        kind = _readable(name)
        message = f"the expression evaluates to {quote(kind)}, not {quote(result)}"
        return [RuleProblem(message, f"Write an expression that evaluates to a {result}.")]

    def compile(
        self, expression: str, optional_old_self: bool = False
    ) -> tuple[list[RuleProblem], str]:
        """Return why the API server would reject ``expression``, whatever its type, and its type.

        The name of the type is empty if the expression does not compile.
        """
        if self._self_type is None and self._variables is None:
            message = "a rule cannot read a value whose structure is not declared"
            return [RuleProblem(message, "Declare its type and fields, or remove the rule.")], ""
        if len(expression) > _LONGEST:
            message = f"the rule has {len(expression):,} characters, and API servers refuse it"
            hint = f"Split it into rules of up to {_LONGEST:,} characters."
            return [RuleProblem(message, hint)], ""
        try:
            compiled = self._environment(optional_old_self).compile(_rename_macros(expression))
        except RuntimeError as error:
            issues = self._issues(str(error), expression)
            return list(islice(issues, _MOST_PROBLEMS)), ""
        problems = [*check_literals(expression), *_check_compiled(compiled, expression)]
        return problems, str(compiled.return_type().name().lower())

    def is_broken_by(self, expression: str, value: Any, optional_old_self: bool = False) -> bool:
        """Return whether a default ``value`` is certain to violate a rule that compiles.

        Returns False if this cannot be determined here, because the rule uses an escaped name,
        calls a Kubernetes function (none is implemented here), or reads a string that the API
        server parses first.
        """
        # A false "yes" would refuse a default that the API server accepts, so any doubt means no.
        # Strings with a format such as date-time reach rules as timestamps, which YAML values are
        # not, and escaped names differ from the names in the value.
        if self._declarations.has_parsed_texts or "__" in expression:
            return False
        try:
            result = _evaluate(expression, value)
            # A transition rule is evaluated with the same value on both sides, as on an update
            # without changes.  The API server does not wrap it where the rule expects an optional,
            # so that the methods of optionals fail.
            if optional_old_self and _NO_METHOD in str(result):
                return True
            return result is False
        except RuntimeError:
            return False

    def _environment(self, optional_old_self: bool) -> cel.Env:
        # One, with what it reads at its first use, takes as long as to compile many expressions.
        if optional_old_self not in self._environments:
            self._environments[optional_old_self] = self._create_environment(optional_old_self)
        return self._environments[optional_old_self]

    def _create_environment(self, optional_old_self: bool) -> cel.Env:
        pool = self._declarations.pool()
        if self._variables is not None:
            types = {name: _type(declared) for name, declared in self._variables.items()}
            return cel.NewEnv(config=_functions(), descriptor_pool=pool, variables=types)
        assert self._self_type is not None
        # A pool for each environment, because messages are named by number and would conflict.
        if not optional_old_self:
            own = _type(self._self_type)
            return cel.NewEnv(
                config=_functions(), descriptor_pool=pool, variables={"self": own, "oldSelf": own}
            )
        # The library has no Python value for an optional type; only a configuration can declare
        # one.
        old = {"type_name": "optional_type", "params": [self._self_type]}
        variables = [{"name": "self", **self._self_type}, {"name": "oldSelf", **old}]
        configuration = json.dumps({**build_environment(), "variables": variables})
        return cel.NewEnv(config=cel.NewEnvConfigFromYaml(configuration), descriptor_pool=pool)

    def _issues(self, text: str, expression: str) -> Iterator[RuleProblem]:
        issues = [(int(line), int(column), why) for line, column, why in _ISSUE.findall(text)]
        if not issues or _TOO_DEEP.search(text):
            message = "the rule is nested too deeply to be checked here"
            yield RuleProblem(message, "Split it, or check it on an API server.", undecided=True)
            return
        for line, column, why in sorted(issues):
            if why.startswith("Syntax error"):
                message = f"the rule is not a valid CEL expression: {_syntax(why)}"
                # Errors after a syntax error are often its consequences.
                yield RuleProblem(message, "Correct the expression here.", line, column)
                return
            message, hint = self._explain(why)
            name = _UNDECLARED.search(why)
            is_foreign = name is not None and may_be_function(name[1], expression)
            yield RuleProblem(message, hint, line, column, is_foreign=is_foreign)

    def _explain(self, why: str) -> tuple[str, str]:
        """Return message and hint for a type checker error."""
        if match := _UNKNOWN_FIELD.search(why):
            known = self._declarations.fields.get(match[2], [])
            return f"{quote(match[1])} is not a field of this object", suggest(match[1], known)
        if match := _UNDECLARED.search(why):
            return f"{quote(match[1])} is not a variable or function", _FUNCTIONS
        if match := _NO_OVERLOAD.search(why):
            operator = _OPERATOR.fullmatch(match[1])
            types = _readable(match[2])
            message = f"{quote(operator[1] if operator else match[1])} cannot be used with {types}"
            return message, "Use values of matching types; `nullable` makes no difference."
        return _readable(why), "Correct the expression here."


def _type(declared: CelType) -> cel.Type:
    """Convert a declared type to a type of the CEL library."""
    name, params = declared["type_name"], [_type(param) for param in declared.get("params", ())]
    match name, params:
        case "list", [item]:
            return cel.Type.List(item)
        case "map", [key, value]:
            return cel.Type.Map(key, value)
    return getattr(cel.Type, name.upper(), None) or cel.Type(name)


def is_broken(expression: str, value: Any) -> bool:
    """Return whether ``value`` certainly violates a rule that reads ``self`` and no schema."""
    try:
        return _evaluate(expression, value) is False
    except RuntimeError:
        return False


def _evaluate(expression: str, value: Any) -> Any:
    return _compile(expression).eval(data={"self": value, "oldSelf": value}).value()


@cache
def _compile(expression: str) -> cel.Expression:
    return _untyped().compile(expression)


@cache
def _untyped() -> cel.Env:
    variables = dict.fromkeys(("self", "oldSelf"), cel.Type.DYN)
    return cel.NewEnv(config=_functions(is_evaluated=True), variables=variables)


def _syntax(why: str) -> str:
    """Return a syntax error without the parser's technical terms."""
    reason = why.removeprefix("Syntax error: ").partition(" expecting ")[0]
    if match := _MISSING.fullmatch(reason):
        return f"{quote(match[1])} is missing before {_token(match[2])}"
    if match := _UNEXPECTED.fullmatch(reason):
        return f"{_token(match[1])} is unexpected"
    return clip(reason)


def _readable(types: str) -> str:
    """Return ``types`` with message names replaced by readable words."""
    return clip(_MESSAGE.sub(lambda match: match[1].lower(), types))


def _token(text: str) -> str:
    return "the end" if text == "<EOF>" else quote(text)


@cache
def _functions(*, is_evaluated: bool = False) -> cel.EnvConfig:
    """Return the functions, cached, because reading their declarations is slow."""
    return cel.NewEnvConfigFromYaml(json.dumps(build_environment(is_evaluated=is_evaluated)))


@dataclass(frozen=True, slots=True)
class RuleProblem:
    """A reason why the API server would reject a rule.

    Lines and columns are 1-based. Line and column 0 mean the whole expression.
    """

    message: str
    hint: str
    line: int = 0
    column: int = 0
    undecided: bool = False
    """Whether some API servers may accept the rule."""
    is_foreign: bool = False
    """Whether the cause may be a function that exists only in another Kubernetes release."""
