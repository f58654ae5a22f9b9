"""Remove secret values from objects and log lines."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

HIDDEN = "(hidden)"
_KINDS = (
    r"token|passwd|password|passphrase|(?:private|certificate|secret|access|api)[-_]?key"
    r"|client[-_]?secret|client[-_]?key[-_]?data"
)
_NAMES = re.compile(rf"{_KINDS}|credentials?|user[-_]?data", re.IGNORECASE)
_VARIABLES = re.compile(rf"{_NAMES.pattern}|secret", re.IGNORECASE)
"""Names of environment variables and similar entries with secret values."""
_PUBLIC = re.compile(
    r"(?:name|namespace|ref|refs|path|file|kind|type|id|ttl|expires|apiversion|apigroup)$",
    re.IGNORECASE,
)
"""Keys for the name or location of a secret, as in ``tokenSecretName``."""
_MIN_SECRET = 6
"""Length from which the value of a secret is replaced wherever it occurs, in characters."""
_LEFT_OUT = ("managedFields", "kubectl.kubernetes.io/last-applied-configuration")
_BEGIN = r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
_END = r"-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
_KEY = re.compile(rf"{_BEGIN}.*?(?:{_END}|\Z)", re.DOTALL)
_KEY_BEGIN, _KEY_END = re.compile(_BEGIN), re.compile(_END)
_ENCODED_KEY = re.compile(r"LS0tLS1CRUdJTi(?:BQUklW|BSU0Eg|BFQyBQ|BPUEVO|BFTkNS)[A-Za-z0-9+/=]*")
"""Private keys in base64, as in a kubeconfig. All of them begin alike."""
_ASSIGNED = re.compile(
    rf"((?:{_KINDS}|secret)\\?[\"']?[ \t]*[=:][ \t]*(?:bearer[ \t]+)?|bearer[ \t]+)"
    r"(?:\\?\"[^\"\n]+\"?|'[^'\n]+'?|[^\s\"',;]{4,})",
    re.IGNORECASE,
)
_BOOTSTRAP_TOKEN = re.compile(r"\b[a-z0-9]{6}\.[a-z0-9]{16}\b")
_MAX_KEY_LINES = 200
"""Maximum number of lines of a private key whose last line is missing."""


def hide_secrets(value: Any) -> Any:
    """Return an object without managed fields, and with values that may be secret replaced.

    These are values under names such as ``token``, ``password`` or ``credentials``, the values of
    environment variables with such names, and the content of files in bootstrap configurations.
    :func:`hide_in_line` is applied to all other strings.
    """
    return _hide(value, "", is_secret=False)


def hide_in_line(line: str) -> str:
    """Return a string with passwords, private keys, bearer tokens and bootstrap tokens replaced.

    The string may have several lines.  A private key without an end marker is replaced up to the
    end of the string.
    """
    line = _ENCODED_KEY.sub(HIDDEN, _KEY.sub(HIDDEN, line))
    line = _ASSIGNED.sub(lambda match: match[1] + HIDDEN, line)
    return _BOOTSTRAP_TOKEN.sub(HIDDEN, line)


def hide_values(line: str, values: Iterable[str]) -> str:
    """Return a string with all occurrences of ``values`` replaced.

    ``values`` are known secrets.  Very short ones are not replaced, because other words may contain
    them.
    """
    for value in sorted(values, key=len, reverse=True):
        if len(value) >= _MIN_SECRET:
            line = line.replace(value, HIDDEN)
    return line


def is_secret_variable(name: str) -> bool:
    """Return whether an environment variable with this name is likely to hold a secret."""
    return _VARIABLES.search(name) is not None and not _PUBLIC.search(name)


def has_key_end(line: str) -> bool:
    """Return whether a line contains the end of a private key that began on an earlier line."""
    return _KEY_END.search(_KEY.sub("", line)) is not None


class KeyHider:
    """Replaces private keys that extend over several lines of a log."""

    def __init__(self) -> None:
        self._left = 0
        """Lines that can still belong to the key; 0 outside of keys."""

    def hide(self, lines: list[str]) -> list[str]:
        """Return the lines, with lines that belong to private keys replaced.

        ``lines`` must directly follow those of the previous call.  A key on a single line is left
        to :func:`hide_in_line`.
        """
        return [self._hide_line(line) for line in lines]

    def _hide_line(self, line: str) -> str:
        if self._left:
            end = _KEY_END.search(line)
            if end is None:
                self._left = _MAX_KEY_LINES if _KEY_BEGIN.search(line) else self._left - 1
                return HIDDEN
            self._left = 0
            line = HIDDEN + line[end.end() :]
        begins = [match.end() for match in _KEY_BEGIN.finditer(line)]
        if begins and not _KEY_END.search(line, begins[-1]):
            self._left = _MAX_KEY_LINES
        return line


def _hide(value: Any, key: str, *, is_secret: bool) -> Any:
    """Return a value without secrets.  ``is_secret`` is whether it is one itself."""
    if isinstance(value, dict):
        variable = value.get("name")
        return {
            name: _hide(each, str(name), is_secret=_is_secret(str(name), key, variable, is_secret))
            for name, each in value.items()
            if name not in _LEFT_OUT
        }
    if isinstance(value, list):
        return [_hide(each, key, is_secret=is_secret) for each in value]
    if is_secret and isinstance(value, str | int | float) and not isinstance(value, bool):
        return HIDDEN
    return hide_in_line(value) if isinstance(value, str) else value


def _is_secret(key: str, parent: str, variable: object, is_below_secret: bool) -> bool:
    """Return whether a key of a mapping has a secret value.

    ``parent`` is the key of the mapping itself, and ``variable`` the value of its ``name``.
    """
    if _PUBLIC.search(key):
        return False
    if key == "value" and isinstance(variable, str) and not _PUBLIC.search(variable):
        is_below_secret = is_below_secret or _VARIABLES.search(variable) is not None
    is_content = parent == "files" and key == "content"
    return is_below_secret or is_content or _NAMES.search(key) is not None
