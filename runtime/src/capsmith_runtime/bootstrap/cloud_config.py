"""Writes cloud-init's cloud-config from plain data, as YAML that all parsers read the same way.

All strings are quoted, so that none of them is read as a number, a date or a boolean, or ends the
value that contains it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

HEADER: Final = "#cloud-config\n"

_ESCAPED: Final = re.compile(r'["\\\x00-\x1f\x7f-\xa0\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]')
_SHORT: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def cloud_config(document: Mapping[str, Any]) -> bytes:
    """Return cloud-init's cloud-config for mappings, lists, strings, integers and booleans.

    Raises TypeError for a value of any other type.
    """
    return (HEADER + "".join(f"{line}\n" for line in _lines(document))).encode()


def write_file(path: str, content: str, permissions: str = "0644") -> dict[str, str]:
    """Return a ``write_files`` entry for a file that root owns.

    ``permissions`` is the file mode in octal notation.
    """
    return {"path": path, "owner": "root:root", "permissions": permissions, "content": content}


def _lines(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _entry(f"{_scalar(key)}:", item)
    elif _is_list(value) and value:
        for item in value:
            first, *rest = _lines(item)
            yield f"- {first}"
            yield from (f"  {line}" for line in rest)
    else:
        yield _scalar(value)


def _entry(key: str, value: Any) -> Iterator[str]:
    if (isinstance(value, Mapping) or _is_list(value)) and value:
        yield key
        yield from (f"  {line}" for line in _lines(value))
    else:
        yield f"{key} {_scalar(value)}"


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return '"' + _ESCAPED.sub(_escape, value) + '"'
    # Before int, of which bool is a subclass.
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Mapping):
        return "{}"
    if _is_list(value):
        return "[]"
    raise TypeError(f"a cloud-config cannot contain {type(value).__name__}")


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    return _SHORT.get(character) or f"\\u{ord(character):04x}"


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))
