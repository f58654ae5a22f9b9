r"""Regular expressions in RE2 syntax, the only syntax that the API server accepts.

The CEL library contains RE2, but takes longer to load than most runs last.  Patterns that mean the
same to pydantic's engine, which takes linear time, too, are left to that one.  Python's engine
accepts patterns that the API server rejects, and takes exponential time for some.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from pydantic_core import SchemaError, SchemaValidator, ValidationError, core_schema

from capsmith.yamldoc.quote import clip

if TYPE_CHECKING:
    from cel_expr_python import cel

_MOST_REPEATS = 1000
_MANY = 10**9
_MOST_MATCHED = 10_000
"""Size of the largest patterns that RE2 matches.  The CEL library compiles them for each text."""
_UNICODE, _OF_CLASS = re.compile(r"\\[pP]|\(\?[a-z]*i"), 100
_KEPT_REFUSALS, _KEPT_VALIDATORS = 1024, 64
"""Numbers of patterns that are kept.  A compiled pattern may take megabytes."""
_ASCII = {
    "d": "[0-9]",
    "D": "[^0-9]",
    "w": "[0-9A-Za-z_]",
    "W": "[^0-9A-Za-z_]",
    "s": r"[\t\n\f\r ]",
    "S": r"[^\t\n\f\r ]",
}
"""Classes that include characters of all scripts in pydantic's engine, but only ASCII in RE2."""
_COUNT = r"\{([0-9]{1,3})(?:,([0-9]{1,3})?)?\}"
_ESCAPE = r"\\(?:[dDwWsSnrt.+*?()|\[\]{}^$\\/_-]|[pP](?:[LMNPSZ]|\{[LMNPSZ]\}))"
# In brackets, pydantic's engine has operators that RE2 lacks, such as `&&`, and the two disagree
# about hyphens other than those of a range, at the beginning and at the end.
_ITEM = rf"(?:[^\\\[\]&~^-]-[^\\\[\]&^-]|{_ESCAPE}|[^\\\[\]&~^-])"
_GROUP_OR_COUNT = re.compile(
    r"\\[xpP]\{[^}]*\}|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{([0-9]+)(?:,([0-9]*))?\}|.", re.DOTALL
)
_PLAIN = re.compile(
    rf"""
    (?:\(\?i\))?+
    (?:
        (?: {_ESCAPE} | [^\\\[\]({{}}*+?] | \((?:\?:|(?!\?)) | \[\^?+(?:-?+{_ITEM}++-?+|-)\] )
        (?: (?: [*+?] | {_COUNT} ) \??+ )?+
    )*+
    """,
    re.VERBOSE,
)
"""Patterns that both engines read in the same way, if pydantic's engine compiles them."""
_FOREIGN = re.compile(
    r"(?:^|[^\\])(?:\\\\)*(\\C|\(\?P?<\w*[^\x00-\x7f]\w*>|\{[0-9]{9,}(?:,[0-9]*)?\})"
)
"""What the RE2 of the CEL library accepts, and that of the API server refuses."""
_PREFIX = re.compile(r"\A.*?invalid regular expression: ", re.DOTALL)
_READABLE = (
    (
        re.compile(r"invalid (?:perl operator|named capture group): \(\?<?[=!]"),
        "look-around is not supported",
    ),
    (
        re.compile(r"invalid escape sequence: \\(?:[1-9]|[gk]<)"),
        "back-references are not supported",
    ),
)
"""What RE2 leaves out by design, by the errors of RE2."""
_TOO_LARGE = "regular expression too large"
"""Part of the error for a pattern above a limit of the CEL library, which API servers lack."""


@lru_cache(_KEPT_REFUSALS)
def explain_refusal(pattern: str) -> str:
    """Return the reason why the API server would reject ``pattern``; empty if it accepts it."""
    if _is_plain(pattern):
        return ""
    if foreign := _FOREIGN.search(pattern):
        return f"`{foreign[1][:20]}` is not supported"
    _, refusal = _match(pattern, "")
    for error, reason in _READABLE:
        if error.match(refusal):
            return reason
    return "" if _TOO_LARGE in refusal else clip(refusal)


def has_match(pattern: str, text: str) -> bool:
    """Return whether RE2 finds a match for ``pattern`` anywhere in ``text``.

    Returns True for an invalid pattern, which :func:`explain_refusal` reports, and for one that is
    too large to be matched here.
    """
    if not _is_plain(pattern):
        if _estimate_size(pattern) > _MOST_MATCHED:
            return True
        is_match, refusal = _match(pattern, text)
        return is_match or bool(refusal)
    try:
        _compile(pattern).validate_python(text)
    except ValidationError:
        return False
    return True


@lru_cache(_KEPT_REFUSALS)
def _is_plain(pattern: str) -> bool:
    """Return whether pydantic's engine is certain to read a pattern as RE2 does."""
    if not _PLAIN.fullmatch(pattern):
        return False
    if _most_repeats(pattern) > _MOST_REPEATS:
        return False
    try:
        _compile(pattern)
    except SchemaError:
        return False
    return True


def _most_repeats(pattern: str) -> int:
    """Return the greatest product of nested counted repetitions, which RE2 limits."""
    greatest = last = 1
    outer: list[int] = []
    for token in _GROUP_OR_COUNT.finditer(pattern):
        if token[0] == "(":
            outer.append(greatest)
            greatest = last = 1
        elif token[0] == ")" and outer:
            last = greatest
            greatest = max(greatest, outer.pop())
        elif token[1]:
            last = min(last * max(int((token[2] or token[1])[:9]), 1), _MANY)
            greatest = max(greatest, last)
        else:
            last = 1
    return max(greatest, *outer) if outer else greatest


def _estimate_size(pattern: str) -> int:
    """Return about how large a compiled pattern is, in characters without repetitions."""
    return (len(pattern) + _OF_CLASS * len(_UNICODE.findall(pattern))) * _most_repeats(pattern)


@lru_cache(_KEPT_VALIDATORS)
def _compile(pattern: str) -> SchemaValidator:
    """Compile a plain pattern.  Raises SchemaError if it is invalid or too large."""
    translated = re.sub(
        r"\\(.)", lambda escape: _ASCII.get(escape[1], escape[0]), pattern, flags=re.DOTALL
    )
    return SchemaValidator(core_schema.str_schema(pattern=translated, regex_engine="rust-regex"))


def _match(pattern: str, text: str) -> tuple[bool, str]:
    """Return whether RE2 finds a match, and why it refuses the pattern; empty if it does not."""
    try:
        result = _matcher().eval(data={"pattern": pattern, "text": text}).value()
    except RuntimeError:
        return False, "it has characters that are not allowed in texts"
    if isinstance(result, bool):
        return result, ""
    return False, _PREFIX.sub("", str(result))


@cache
def _matcher() -> cel.Expression:
    from cel_expr_python import cel

    variables = dict.fromkeys(("pattern", "text"), cel.Type.STRING)
    return cel.NewEnv(variables=variables).compile("text.matches(pattern)")
