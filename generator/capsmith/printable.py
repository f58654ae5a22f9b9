"""Tell printable characters from others, in the same way with each version of Python.

``str.isprintable`` and ``repr`` follow the Unicode version of the running Python: they treat a
character that a later version assigned, such as a new emoji, like a control character.  Generated
files must not depend on that.
"""

from __future__ import annotations

import re

_UNPRINTABLE = (
    "\x00-\x1f\x7f-\xa0\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u1680\u180e"
    "\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ud800-\uf8ff\ufdd0-\ufdef\ufeff"
    "\ufff9-\ufffb\ufffe\uffff\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f"
    "\U000f0000-\U0010ffff"
)
"""Control, format and private characters, surrogates, non-characters, and blanks except the space.

Characters that Unicode has not assigned yet are printable.
"""
_CHARACTER = re.compile(f"[{_UNPRINTABLE}]")
_ESCAPED = {quote: re.compile(rf"[\\{quote}{_UNPRINTABLE}]") for quote in "'\""}
_SHORT = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def make_printable(text: str) -> str:
    """Return ``text`` with each unprintable character replaced by its Python escape sequence."""
    return _CHARACTER.sub(_escape, text)


def make_lines_printable(text: str) -> str:
    """Return ``text`` like :func:`make_printable`, but keep line feeds and tabs."""
    return _CHARACTER.sub(lambda found: found[0] if found[0] in "\n\t" else _escape(found), text)


def replace_unprintable(text: str, replacement: str) -> str:
    """Return ``text`` with each unprintable character replaced by ``replacement``."""
    return _CHARACTER.sub(lambda _: replacement, text)


def escape_toml(text: str) -> str:
    """Return ``text`` with each unprintable character as an escape sequence of TOML."""
    # Unlike Python, TOML has no escapes such as \xad.
    return _CHARACTER.sub(lambda found: _unicode_escape(ord(found[0])), text)


def escape_json(text: str) -> str:
    """Return a JSON document with each unprintable character in a string as an escape sequence.

    Line feeds are kept: in valid JSON they are between values.
    """
    return _CHARACTER.sub(lambda found: found[0] if found[0] == "\n" else _escape_json(found), text)


def find_unprintable(text: str) -> str:
    """Return the first unprintable character in ``text``; empty if there is none."""
    found = _CHARACTER.search(text)
    return found[0] if found is not None else ""


def quote_python(text: str) -> str:
    """Return ``text`` as a Python literal, with the quotes that ``repr`` would choose."""
    quote = '"' if "'" in text and '"' not in text else "'"
    return quote + _ESCAPED[quote].sub(_escape, text) + quote


def _escape(found: re.Match[str]) -> str:
    character, code = found[0], ord(found[0])
    if character in "'\"":
        return f"\\{character}"
    if character in _SHORT:
        return _SHORT[character]
    if code < 0x100:
        return f"\\x{code:02x}"
    return _unicode_escape(code)


def _escape_json(found: re.Match[str]) -> str:
    # JSON has no escapes of more than four digits: a pair of surrogates replaces them.
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


def _unicode_escape(code: int) -> str:
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
