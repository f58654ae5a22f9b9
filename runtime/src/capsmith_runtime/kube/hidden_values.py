"""Hides the values of credentials in texts that others than their owner read.

SDKs repeat parts of a request in the messages of their errors. Python's HTTP client, for example,
raises ``Invalid header value b'Bearer ...'`` if a token ends with a newline.  Only the credentials
of the current call are hidden: otherwise, a user could choose values that are words of messages
about the objects of others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import Final
from urllib.parse import quote

_MIN_CHARACTERS: Final = 8
"""Shorter values, such as names of users, are often words of the message itself."""
_MAX_CHARACTERS: Final = 65536
"""A longer value does not fit into a message."""
_values: Final[ContextVar[tuple[Mapping[str, str], ...]]] = ContextVar("hidden_values", default=())


def hide_values(*values: Mapping[str, str]) -> None:
    """Hide these values, and no others, in the messages of the current context from now on.

    Each is replaced by its key.
    """
    _values.set(values)


def redact(text: str) -> str:
    """Return the text without the hidden values."""
    for values in _values.get():
        for key, value in values.items():
            for form in _forms(value):
                if form in text:
                    text = text.replace(form, f"(hidden: {key})")
    return text


def _forms(value: str) -> Iterator[str]:
    """Yield a value as messages contain it, without white space at its ends."""
    found = value.strip() if len(value) <= _MAX_CHARACTERS else ""
    if len(found) < _MIN_CHARACTERS:
        return
    yield found
    if not found.isalnum():
        yield from (repr(found)[1:-1], json.dumps(found)[1:-1], quote(found, safe=""))
