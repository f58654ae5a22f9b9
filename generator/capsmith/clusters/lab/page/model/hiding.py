"""Leave secret values out of objects and log lines."""

from __future__ import annotations

import re
from typing import Any

HIDDEN = "(hidden)"
_NAMES = re.compile(
    r"token|password|passwd|privatekey|certificatekey|clientsecret|secretkey|accesskey|apikey"
    r"|credentials?|userdata",
    re.IGNORECASE,
)
_ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
_FILES = "files"
_LINE = re.compile(
    r"(?i)\b(bearer\s+|(?:token|password|secret|apikey)\s*[=:]\s*\"?)([^\s\",;]{4,})"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END [A-Z ]*PRIVATE KEY-----)?"
)
_BOOTSTRAP_TOKEN = re.compile(r"\b[a-z0-9]{6}\.[a-z0-9]{16}\b")


def hide_secrets(value: Any, name: str = "") -> Any:
    """Return an object without managed fields, and with secret-looking values replaced.

    Replaced are strings under names such as ``token`` or ``password``, the content of files of
    bootstrap configurations, and whatever has the form of a bootstrap token.  ``name`` is the key
    that holds the value.
    """
    if isinstance(value, dict):
        return {
            key: HIDDEN if name == _FILES and key == "content" else hide_secrets(each, str(key))
            for key, each in value.items()
            if key not in ("managedFields", _ANNOTATION)
        }
    if isinstance(value, list):
        return [hide_secrets(each, name) for each in value]
    if isinstance(value, str):
        return HIDDEN if _NAMES.search(name) and _is_value(name) else _hide_tokens(value)
    return value


def hide_in_line(line: str) -> str:
    """Return a log line with bearer tokens, passwords and private keys replaced."""
    return _hide_tokens(_LINE.sub(lambda match: (match[1] or "") + HIDDEN, line))


def _is_value(name: str) -> bool:
    """Return whether a key holds a secret rather than the name of one: ``tokenSecretName``."""
    return not re.search(r"(name|ref|path|file|kind|type|id|ttl|expires)$", name, re.IGNORECASE)


def _hide_tokens(text: str) -> str:
    return _BOOTSTRAP_TOKEN.sub(HIDDEN, text)
