r"""Regular expressions in RE2 syntax, the only syntax that the API server accepts.

The CEL library contains RE2, but takes longer to load than most runs last.  Patterns that mean the
same to pydantic's engine, which takes linear time, too, are left to that one.  Python's engine
accepts patterns that the API server rejects, and takes exponential time for some.
"""

from __future__ import annotations

import math
import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from pydantic_core import SchemaError, SchemaValidator, ValidationError, core_schema

from capsmith.yamldoc.quote import clip

if TYPE_CHECKING:
    from cel_expr_python import cel

_MOST_REPEATS = 1000
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
_COUNTED = re.compile(_COUNT)
_ESCAPE = r"\\[dDwWsSnrt.+*?()|\[\]{}^$\\/_-]"
# In brackets, pydantic's engine has operators that RE2 lacks, such as `&&`, and the two disagree
# about hyphens other than those of a range, at the beginning and at the end.
_ITEM = rf"(?:[^\\\[\]&~^-]-[^\\\[\]&^-]|{_ESCAPE}|[^\\\[\]&~^-])"
_PLAIN = re.compile(
    rf"""
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
    # RE2 limits the product of nested counts, which is never above that of all counts.
    counts = [int(most or least) for least, most in _COUNTED.findall(pattern)]
    if math.prod(max(count, 1) for count in counts) > _MOST_REPEATS:
        return False
    try:
        _compile(pattern)
    except SchemaError:
        return False
    return True


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
