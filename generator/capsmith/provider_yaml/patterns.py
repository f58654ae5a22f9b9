"""Regular expressions in RE2 syntax, the only syntax that the API server accepts.

They are compiled and matched by pydantic's linear-time engine.  Python's engine accepts patterns
that the API server rejects, and takes exponential time for some.
"""

from __future__ import annotations

import re
from functools import lru_cache

from pydantic_core import SchemaError, SchemaValidator, ValidationError, core_schema

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
    # Includes word boundaries: RE2 only knows ASCII letters.
    "b": r"(?-u:\b)",
}
_TOKEN = re.compile(
    r"\\Q(?P<quoted>.*?)(?:\\E|\Z)|\\(?P<escape>.)"
    r"|\[(?P<negated>\^?)(?P<body>\]?(?:\\.|\[:\^?[a-z]+:\]|[^\]\\])*)\]",
    re.DOTALL,
)
_CLASS_TOKEN = re.compile(r"\\.|\[:\^?[a-z]+:\]|[\[&~]|\A\]", re.DOTALL)
_ESCAPE_OR_CLASS = re.compile(r"\\.|\[\^?\]?(?:\\.|\[:[a-z^]+:\]|[^\]\\])*\]", re.DOTALL)
_FOREIGN = (
    (re.compile(r"\(\?(<?[=!])"), "look-around is not supported"),
    (re.compile(r"\(\?>"), "atomic groups are not supported"),
    (re.compile(r"\(\?[imsU]*[^imsUP<:)-]"), "this group or flag is not supported"),
    (re.compile(r"[*+?}]\??[*+]|[*+?}]\?\?|[*+?]\{\d|\}\{\d"), "one repetition follows another"),
)
_FOREIGN_ESCAPE = re.compile(r"\\([1-9]|[kguUZG<>])")


@lru_cache(_KEPT_REFUSALS)
def explain_refusal(pattern: str) -> str:
    """Return the reason why the API server would reject ``pattern``; empty if it accepts it."""
    # The engine used here would accept some of these with a different meaning, or refuse them with
    # a message about its own syntax.
    for escape in re.findall(r"\\.", pattern, re.DOTALL):
        if _FOREIGN_ESCAPE.match(escape):
            known = "back-references are" if escape[1].isdigit() or escape[1] in "kg" else "it is"
            return f"`{escape}`: {known} not supported"
    # Inside brackets and after a backslash, parentheses and repetition operators are literal.
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


def has_match(pattern: str, text: str) -> bool:
    """Return whether RE2 finds a match for ``pattern`` anywhere in ``text``.

    Returns True for an invalid pattern, which :func:`explain_refusal` reports.
    """
    try:
        _compile(pattern).validate_python(text)
    except ValidationError:
        return False
    except SchemaError:
        return True
    return True


def _most_repeats(bare: str) -> int:
    """Return the greatest product of nested counted repetitions, which RE2 limits."""
    # RE2 expands x{1000}, and refuses nested counts with a larger product.
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


@lru_cache(_KEPT_VALIDATORS)
def _compile(pattern: str) -> SchemaValidator:
    translated = _TOKEN.sub(_translate, pattern)
    return SchemaValidator(core_schema.str_schema(pattern=translated, regex_engine="rust-regex"))


def _translate(token: re.Match[str]) -> str:
    r"""Convert an RE2 token to the syntax of pydantic's engine.

    In that engine, classes such as ``\d`` include characters of all scripts, but in RE2 only ASCII,
    and brackets may contain operators that RE2 lacks.
    """
    if token["quoted"] is not None:
        return re.escape(token["quoted"])
    if token["escape"] is not None:
        return _ASCII.get(token["escape"], f"\\{token['escape']}")
    body = _CLASS_TOKEN.sub(_translate_in_class, token["body"])
    return f"[{token['negated']}{body}]"


def _translate_in_class(token: re.Match[str]) -> str:
    text = token[0]
    if text.startswith("\\"):
        return _ASCII.get(text[1:], text)
    return text if text.startswith("[:") else f"\\{text}"
