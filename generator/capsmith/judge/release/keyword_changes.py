"""Compare a keyword's values in two schemas, and find values that are no longer accepted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from capsmith.cel_text import normalize_rule, refuses_values
from capsmith.contract.model import Comparison, Keyword
from capsmith.judge.release.implied_limits import is_implied
from capsmith.judge.release.pattern_languages import is_included
from capsmith.manifests.crds import EMBEDDED, INT_OR_STRING, OPEN
from capsmith.manifests.parse import list_of, mapping_of

Schema = Mapping[str, Any]
_FORMATS = frozenset(
    {
        *("bsonobjectid", "uri", "email", "hostname", "ipv4", "ipv6", "cidr", "mac", "uuid"),
        *("uuid3", "uuid4", "uuid5", "isbn", "isbn10", "isbn13", "creditcard", "ssn"),
        *("hexcolor", "rgbcolor", "byte", "date", "duration", "datetime"),
        *("k8s-short-name", "k8s-long-name"),
    }
)
"""Formats that the API server checks, without hyphens in ``date-time``."""
_NARROWER_FORMATS: Mapping[str, frozenset[str]] = {
    "uuid": frozenset({"uuid3", "uuid4", "uuid5"}),
    "isbn": frozenset({"isbn10", "isbn13"}),
    "k8s-long-name": frozenset({"k8s-short-name"}),
}
"""Formats whose values another format accepts, too."""
_DOCUMENTATION = frozenset({"description", "title", "example", "externalDocs"})


class KeywordChange(NamedTuple):
    """A change to a schema keyword that affects stored objects or clients."""

    rule: str
    message: str
    keyword: str


def find_keyword_changes(
    old: Schema, new: Schema, keywords: Mapping[str, Keyword]
) -> Iterator[KeywordChange]:
    """Yield the harmful changes to schema keywords, in the order of ``keywords``.

    Keywords that describe a schema's structure are not compared; callers must do that themselves.
    """
    for keyword in keywords.values():
        compare = _COMPARISONS.get(keyword.comparison)
        if compare is None or _plain(old.get(keyword.name)) == _plain(new.get(keyword.name)):
            continue
        narrowed, widened = compare(old, new, keyword)
        if narrowed and keyword.narrowed and not is_implied(old, new, keyword.name):
            yield KeywordChange(keyword.narrowed, narrowed, keyword.name)
        elif widened and keyword.widened:
            yield KeywordChange(keyword.widened, widened, keyword.name)


_Directions = tuple[str, str]
"""What is refused now and what is accepted now; empty for nothing."""


def _lower_limit(old: Schema, new: Schema, keyword: Keyword) -> _Directions:
    return _limit(old, new, keyword, 1)


def _upper_limit(old: Schema, new: Schema, keyword: Keyword) -> _Directions:
    return _limit(old, new, keyword, -1)


def _limit(old: Schema, new: Schema, keyword: Keyword, sign: int) -> _Directions:
    before, after = _number(old.get(keyword.name)), _number(new.get(keyword.name))
    # No length is below zero, so such a limit refuses nothing.
    is_void = keyword.name in {"minLength", "minItems", "minProperties"} and after == 0
    if after is None or is_void or (before is not None and (after - before) * sign <= 0):
        return "", ""
    return f"has {keyword.name} {after}, {'not before' if before is None else f'not {before}'}", ""


def _exclusive_limit(old: Schema, new: Schema, keyword: Keyword) -> _Directions:
    before, after = _number(old.get(keyword.limit)), _number(new.get(keyword.limit))
    # A changed limit already shows which values are refused.
    if new.get(keyword.name) is not True or after is None or before != after:
        return "", ""
    return f"no longer accepts the {keyword.limit} {after} itself", ""


def _divisor(old: Schema, new: Schema, keyword: Keyword) -> _Directions:
    before, after = _number(old.get(keyword.name)), _number(new.get(keyword.name))
    # Every multiple of 6 is a multiple of 3.
    if after and before is not None and before % after == 0:
        return "", ""
    return _form(old, new, keyword)


def _form(old: Schema, new: Schema, keyword: Keyword) -> _Directions:
    name = keyword.name
    before, after = _plain(list_of(old, name)), _plain(list_of(new, name))
    # The order of alternatives has no meaning.
    is_same = len(before) == len(after) > 0 and all(part in before for part in after)
    if name not in new or is_same:
        return "", ""
    return f"has {name} {new[name]}, {f'not {old[name]}' if name in old else 'not before'}", ""


def _format(old: Schema, new: Schema, keyword: Keyword) -> _Directions:
    before, after = (
        str(each.get("format", "")).replace("date-time", "datetime") for each in (old, new)
    )
    # Of the formats of numbers, only this one excludes values that a stored object can have.
    is_narrow = after == "int32" and new.get("type") in ("integer", "number")
    is_checked = after in _FORMATS or is_narrow
    is_wider = before == after or before in _NARROWER_FORMATS.get(after, ())
    return _form(old, new, keyword) if is_checked and not is_wider else ("", "")


def _pattern(old: Schema, new: Schema, keyword: Keyword) -> _Directions:
    before, after = old.get(keyword.name), new.get(keyword.name)
    # For expressions that cannot be compared, a change may refuse values.
    if isinstance(before, str) and isinstance(after, str) and is_included(before, after):
        return "", ""
    return _form(old, new, keyword)


def _choices(old: Schema, new: Schema, keyword: Keyword) -> _Directions:
    choices, left = list_of(old, keyword.name), list_of(new, keyword.name)
    if left and not choices:
        return f"now accepts only {', '.join(map(str, left))}", ""
    gone = [str(choice) for choice in choices if left and choice not in left]
    return (f"no longer accepts {', '.join(gone)}", "") if gone else ("", "")


def _nullable(old: Schema, new: Schema, keyword: Keyword) -> _Directions:
    is_narrowed = old.get("nullable") is True and new.get("nullable") is not True
    # The API server replaces null with the default of a field that is not nullable.
    return ("no longer accepts null", "") if is_narrowed and "default" not in new else ("", "")


def _validations(old: Schema, new: Schema, keyword: Keyword) -> _Directions:
    known = {
        normalize_rule(str(mapping_of(rule).get("rule"))) for rule in list_of(old, keyword.name)
    }
    added = [
        text
        for rule in map(mapping_of, list_of(new, keyword.name))
        for text in (str(rule.get("rule")),)
        if normalize_rule(text) not in known
        and refuses_values(text, is_optional=rule.get("optionalOldSelf") is True)
    ]
    return "; ".join(f"has a new rule {text!r}" for text in added), ""


def _all_of(old: Schema, new: Schema, keyword: Keyword) -> _Directions:
    known = _plain(list_of(old, keyword.name))
    added = [part for part in _meaningful(new, keyword) if part not in known]
    return (f"has a new part of {keyword.name}: {added[0]}", "") if added else ("", "")


def _any_of(old: Schema, new: Schema, keyword: Keyword) -> _Directions:
    before, after = _meaningful(old, keyword), _meaningful(new, keyword)
    if not after or (before and all(part in after for part in before)):
        return "", ""
    return f"has a different {keyword.name} than before", ""


def _meaningful(schema: Schema, keyword: Keyword) -> list[Any]:
    parts: list[Any] = _plain(list_of(schema, keyword.name))
    # This rule is generated for every such field, and means the same as the keyword.
    both = [{"type": "integer"}, {"type": "string"}]
    if schema.get(INT_OR_STRING) is True:
        return [] if parts == both else [part for part in parts if part != {"anyOf": both}]
    return parts


def _flag(old: Schema, new: Schema, keyword: Keyword) -> _Directions:
    # An open object keeps what an embedded one declares.
    if keyword.name == EMBEDDED and new.get(OPEN) is True and new.get(EMBEDDED) is not True:
        return "", ""
    before, after = old.get(keyword.name) is True, new.get(keyword.name) is True
    return (
        f"now has {keyword.name}" if after and not before else "",
        f"no longer has {keyword.name}" if before and not after else "",
    )


def _list_type(old: Schema, new: Schema, keyword: Keyword) -> _Directions:
    before, after = (each.get(keyword.name, "atomic") for each in (old, new))
    if before == after:
        return "", ""
    message = f"was a list of type {before} and is now one of type {after}"
    return ("", message) if after == "atomic" else (message, "")


def _map_type(old: Schema, new: Schema, keyword: Keyword) -> _Directions:
    before, after = (each.get(keyword.name, "granular") for each in (old, new))
    message = f"was a map of type {before} and is now one of type {after}"
    return ("", message) if before != after else ("", "")


def _keys(old: Schema, new: Schema, keyword: Keyword) -> _Directions:
    before, after = (set(map(str, list_of(each, keyword.name))) for each in (old, new))
    # The list type has changed too, which says more.
    if not before or not after or before == after:
        return "", ""
    keys = ", ".join(sorted(after))
    message = f"now identifies its items by {keys}, before by {', '.join(sorted(before))}"
    return ("", message) if before < after else (message, "")


_COMPARISONS: Mapping[Comparison, Callable[[Schema, Schema, Keyword], _Directions]] = {
    Comparison.LOWER_LIMIT: _lower_limit,
    Comparison.UPPER_LIMIT: _upper_limit,
    Comparison.EXCLUSIVE_LIMIT: _exclusive_limit,
    Comparison.DIVISOR: _divisor,
    Comparison.FORM: _form,
    Comparison.FORMAT: _format,
    Comparison.PATTERN: _pattern,
    Comparison.CHOICES: _choices,
    Comparison.NULLABLE: _nullable,
    Comparison.VALIDATIONS: _validations,
    Comparison.ALL_OF: _all_of,
    Comparison.ANY_OF: _any_of,
    Comparison.FLAG: _flag,
    Comparison.LIST_TYPE: _list_type,
    Comparison.MAP_TYPE: _map_type,
    Comparison.KEYS: _keys,
}


def _number(value: Any) -> int | float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number else None


def _plain(value: Any) -> Any:
    """Return a part of a schema without documentation."""
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items() if key not in _DOCUMENTATION}
    return [_plain(part) for part in value] if isinstance(value, list) else value
