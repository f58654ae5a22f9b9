"""Blueprint filters: pure functions that convert values to strings that are safe to print."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import yaml

from capsmith.printable import escape_toml, quote_python, replace_unprintable
from capsmith.safetext import SafeText


# The C dumper is missing where PyYAML was built without libyaml, so the base is not static.
class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Writes block style without aliases; subclasses of ``str`` are written as plain strings."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


# Strings that PyYAML leaves plain, but that Go's parsers read as booleans or numbers.
_AMBIGUOUS = re.compile(r"[yYnN]|[-+.0-9][-+.0-9a-fA-FxXoO_]*")


def _text(dumper: Any, value: str) -> Any:
    style = None
    if "\n" in value and not re.search(r"[ \t]\n|^\s|[^\x20-\x7e\n]", value):
        style = "|"
    elif "${" in value or _AMBIGUOUS.fullmatch(value):
        # A value that clusterctl substitutes for a variable stays a string.
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(value), style=style)


def _sequence(dumper: Any, value: Iterable[Any]) -> Any:
    return dumper.represent_list(list(value))


def _mapping(dumper: Any, value: Mapping[Any, Any]) -> Any:
    return dumper.represent_mapping("tag:yaml.org,2002:map", dict(value).items())


_Dumper.add_multi_representer(str, _text)
_Dumper.add_representer(str, _text)
_Dumper.add_representer(tuple, _sequence)
_Dumper.add_multi_representer(Mapping, _mapping)
_Dumper.add_multi_representer(frozenset, lambda d, v: _sequence(d, sorted(v)))


def to_yaml(value: Any, indent: int = 0) -> SafeText:
    """Return ``value`` as block YAML, without a final newline.

    All lines after the first are indented by ``indent`` spaces; the blueprint itself must indent
    the first line.  YAML 1.1 keywords (``no``, ``on``) are quoted.
    """
    text = yaml.dump(
        value,
        Dumper=_Dumper,
        sort_keys=False,
        default_flow_style=False,
        allow_unicode=False,
        width=100_000,
    )
    text = text.removesuffix("...\n").removesuffix("\n")
    return SafeText(text.replace("\n", "\n" + " " * indent))


def py_literal(value: Any) -> SafeText:
    """Return plain data as the source of a Python literal.

    Raises TypeError if ``value`` contains anything other than strings, numbers, booleans, None,
    mappings, lists, tuples and frozensets.
    """
    if isinstance(value, str):
        return SafeText(quote_python(value))
    if value is None or isinstance(value, bool | int | float):
        return SafeText(repr(value))
    if isinstance(value, Mapping):
        items = (f"{py_literal(key)}: {py_literal(item)}" for key, item in value.items())
        return SafeText("{" + ", ".join(items) + "}")
    if isinstance(value, tuple):
        inner = ", ".join(py_literal(item) for item in value)
        return SafeText(f"({inner},)" if len(value) == 1 else f"({inner})")
    if isinstance(value, list):
        return SafeText("[" + ", ".join(py_literal(item) for item in value) + "]")
    if isinstance(value, frozenset):
        inner = ", ".join(py_literal(item) for item in sorted(value))
        return SafeText("frozenset({" + inner + "})" if inner else "frozenset()")
    raise TypeError(f"no Python literal for {type(value).__name__}")


def json_literal(value: Any, indent: int | None = None) -> SafeText:
    """Return ``value`` as ASCII JSON, which is also valid YAML; a string is also valid TOML."""
    return SafeText(json.dumps(value, indent=indent, default=_plain))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, frozenset):
        return sorted(value)
    raise TypeError(f"no JSON for {type(value).__name__}")


def toml_literal(value: str | int | bool | Iterable[str]) -> SafeText:
    """Return a string, number, boolean or list of strings as a TOML value."""
    if isinstance(value, str):
        # JSON and TOML have the same escapes, except for surrogate pairs (hence no ASCII).  TOML
        # requires one for DEL, and characters that an editor hides or reorders need one to be seen.
        return SafeText(escape_toml(json.dumps(str(value), ensure_ascii=False)))
    if isinstance(value, bool | int):
        return SafeText(json.dumps(value))
    return SafeText("[" + ", ".join(toml_literal(item) for item in value) + "]")


_DOCSTRING = 94
"""Maximum width of a docstring line that has quotes on both sides."""


def one_line(text: str) -> str:
    """Return ``text`` on one line. Control characters and runs of blanks become a single space."""
    return " ".join(replace_unprintable(text, " ").split())


def comment(text: str, prefix: str = "# ", width: int = 96) -> SafeText:
    """Return ``text`` as comment lines that start with ``prefix``. ``width`` excludes the prefix.

    A space is inserted after each ``$``, because clusterctl substitutes variables even in comments.
    Raises TypeError if ``prefix`` is not a literal in the blueprint.
    """
    _own(prefix, "# ")
    lines = textwrap.wrap(one_line(text).replace("$", "$ ").strip(), width) or [""]
    return SafeText("\n".join((prefix + line).rstrip() for line in lines))


def docstring(text: str) -> SafeText:
    """Return ``text`` as a module docstring's content: wrapped, escaped, ending in a period.

    The quotes are not included. An exclamation mark or question mark at the end is kept.
    """
    escaped = one_line(text)
    escaped = escaped if escaped.endswith((".", "!", "?")) else escaped + "."
    escaped = re.sub(r'"(?=")|^"', r"\"", escaped.replace("\\", "\\\\"))
    lines = textwrap.wrap(escaped, _DOCSTRING, break_long_words=False, break_on_hyphens=False)
    return SafeText("\n".join(lines))


def plain(text: str) -> SafeText:
    """Return ``text`` on one line, for files that no program parses."""
    return SafeText(one_line(text))


_MARKDOWN = re.compile(r"([\\`*_\[\]<>|#$~])")
_ENTITY = re.compile(r"&(?=#?\w+;)")
_BLOCK = re.compile(r"^(\d{1,9}(?=[.)])|(?=[-+=]))")


def markdown(text: str) -> SafeText:
    """Return ``text`` escaped as Markdown on one line, for a paragraph or a table cell."""
    escaped = _MARKDOWN.sub(r"\\\1", _ENTITY.sub("&amp;", one_line(text)))
    return SafeText(_BLOCK.sub(r"\1\\", escaped).replace("\\<", "&lt;"))


def markdown_code(text: str) -> SafeText:
    """Return ``text`` as inline code that is also valid in a table cell."""
    escaped = one_line(text).replace("|", "\\|")
    longest = max((len(run) for run in re.findall("`+", escaped)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if escaped.startswith("`") or escaped.endswith("`") else ""
    return SafeText(fence + pad + escaped + pad + fence)


def join(values: Iterable[Any], separator: str = "") -> SafeText:
    """Join safe strings and integers with ``separator``.

    Raises TypeError if any string, including ``separator``, was not made safe by a literal filter.
    """
    items = list(values)
    _own(separator, "")
    for item in items:
        if not isinstance(item, SafeText | int):
            raise TypeError(f"join of unsafe text {item!r}")
    return SafeText(separator.join(str(item) for item in items))


def _own(text: str, default: str) -> None:
    if text != default and not isinstance(text, SafeText):
        raise TypeError(f"unsafe text {text!r}")


def lower(text: SafeText) -> SafeText:
    """Return a safe string in lowercase, still marked as safe."""
    return _same(text, str.lower)


def upper(text: SafeText) -> SafeText:
    """Return a safe string in uppercase, still marked as safe."""
    return _same(text, str.upper)


def _same(text: SafeText, change: Callable[[str], str]) -> SafeText:
    if not isinstance(text, SafeText):
        raise TypeError(f"unsafe text {text!r}")
    return SafeText(change(str(text)))


FILTERS: dict[str, Callable[..., Any]] = {
    "to_yaml": to_yaml,
    "py_literal": py_literal,
    "json_literal": json_literal,
    "toml_literal": toml_literal,
    "comment": comment,
    "docstring": docstring,
    "plain": plain,
    "markdown": markdown,
    "markdown_code": markdown_code,
    "join": join,
    "lower": lower,
    "upper": upper,
}
