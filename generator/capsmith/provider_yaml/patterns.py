"""Regular expressions of the RE2 kind, which the API server understands.

Compiled and matched by the linear-time engine that comes with pydantic: Python's own would accept
what the API server refuses, and some patterns would never end.
"""

from __future__ import annotations

import re

from pydantic_core import SchemaError, SchemaValidator, ValidationError, core_schema

_MOST_REPEATS = 1000
_ESCAPE_OR_CLASS = re.compile(r"\\.|\[\^?\]?(?:\\.|\[:[a-z^]+:\]|[^\]\\])*\]", re.DOTALL)
_FOREIGN = (
    (re.compile(r"\(\?(<?[=!])"), "look-around is not known"),
    (re.compile(r"\(\?>"), "atomic groups are not known"),
    (re.compile(r"\(\?[imsU]*[^imsUP<:)-]"), "this group or flag is not known"),
    (re.compile(r"[*+?}]\??[*+]|[*+?}]\?\?|[*+?]\{\d|\}\{\d"), "one repetition follows another"),
)
_FOREIGN_ESCAPE = re.compile(r"\\([1-9]|[kguUZG<>])")


def refusal(pattern: str) -> str:
    """Return why the API server would refuse ``pattern``; empty when it would accept it."""
    for escape in re.findall(r"\\.", pattern, re.DOTALL):
        if _FOREIGN_ESCAPE.match(escape):
            known = "back-references are" if escape[1].isdigit() or escape[1] in "kg" else "it is"
            return f"`{escape}`: {known} not known"
    bare = _ESCAPE_OR_CLASS.sub("x", pattern)
    for foreign, why in _FOREIGN:
        if foreign.search(bare):
            return why
    if _most_repeats(bare) > _MOST_REPEATS:
        return f"more than {_MOST_REPEATS} repetitions"
    try:
        _compile(pattern)
    except SchemaError as error:
        lines = [line.strip() for line in str(error).splitlines()]
        reasons = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
        return reasons[0] if reasons else "it does not compile"
    return ""


def matches(pattern: str, text: str) -> bool:
    """Return whether ``pattern`` occurs in ``text``; a pattern that does not compile matches."""
    try:
        _compile(pattern).validate_python(text)
    except ValidationError:
        return False
    except SchemaError:
        return True
    return True


def _most_repeats(bare: str) -> int:
    """Return the greatest product of nested counted repetitions, which RE2 limits."""
    open_groups = [1]
    last = 1
    for token in re.findall(r"[()]|\{\d+(?:,\d*)?\}|[^(){]+|\{", bare):
        if token == "(":
            open_groups.append(1)
        elif token == ")" and len(open_groups) > 1:
            last = open_groups.pop()
            open_groups[-1] = max(open_groups[-1], last)
        elif token[0] == "{" and len(token) > 1:
            counts = [int(count[:9]) for count in re.findall(r"\d+", token)]
            open_groups[-1] = max(open_groups[-1], min(last * max(counts), 10**9))
        else:
            last = 1
    return max(open_groups)


def _compile(pattern: str) -> SchemaValidator:
    return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))
