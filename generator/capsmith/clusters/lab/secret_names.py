"""Names of the Secrets that objects refer to; what Secrets contain is never read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from capsmith.clusters.conditions import JSON, get_mapping

_LOGIN = re.compile(
    r"credential|unauthori[sz]ed|\b(?:HTTP|status)(?:/[\d.]+)?(?: code)?:? 401\b", re.IGNORECASE
)
"""Texts about a login that is refused."""
_SECRET = re.compile(r"\bsecrets?\b|SecretNotFound", re.IGNORECASE)
_NAMED = re.compile(
    r"\b[Ss]ecrets? (?:\"(?P<quoted>[^\"]+)\"|(?P<place>\S+/\S+)"
    r"|(?P<bare>[a-z0-9][-.a-z0-9]*) (?:is|does|has|belongs|cannot|lacks|contains|ends)\b)"
)
"""The name of a Secret, as Kubernetes and the runtime write it in messages."""
_KEYS = ("secret", "passwdfrom", "credentialsref")
_MAX_NAMES = 3
_MAX_DEPTH = 10


class Holder(NamedTuple):
    """An object that may refer to the Secret that an error is about."""

    obj: JSON
    is_identity: bool = False
    """Whether each Secret that the object refers to has credentials."""


class _Reference(NamedTuple):
    namespace: str
    name: str
    is_login: bool
    """Whether the key of the reference says that the Secret has credentials."""


def find_secret_names(text: str, holders: Iterable[Holder]) -> str:
    """Return a suffix for a message: the names of the Secrets that the message may be about.

    The suffix is in parentheses after a space, and names the Secrets of the first holder that
    refers to any. If the message is about a login, only identities and references to credentials
    count; if it names a Secret, only references to that name count. The suffix is empty if the
    message already includes the Secret's namespace, or if it is about something else.
    """
    named = _NAMED.search(text)
    is_login = named is None and _LOGIN.search(text) is not None
    if not is_login and not _SECRET.search(text):
        return ""
    if named is not None and named["place"]:
        return ""
    name = (named["quoted"] or named["bare"]) if named is not None else ""
    for holder in holders:
        found = [
            each
            for each in _list_secrets(holder.obj)
            if name in ("", each.name) and (not is_login or holder.is_identity or each.is_login)
        ]
        places = list(dict.fromkeys(map(_format_place, found)))[:_MAX_NAMES]
        if places:
            return f" (Secret {', '.join(places)})"
    return ""


def _list_secrets(obj: JSON) -> Iterator[_Reference]:
    """Return an iterator over the references to Secrets in an object's spec."""
    namespace = str(get_mapping(obj.get("metadata")).get("namespace") or "")
    return _find_references(get_mapping(obj.get("spec")), namespace, "", 0)


def _format_place(found: _Reference) -> str:
    if found.namespace:
        return f"{found.namespace}/{found.name}"
    return f"{found.name} in the manager's namespace"


def _find_references(value: object, namespace: str, key: str, depth: int) -> Iterator[_Reference]:
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, list):
        for each in value:
            yield from _find_references(each, namespace, key, depth + 1)
    elif isinstance(value, dict):
        name = value.get("name")
        is_secret = value.get("kind") in (None, "Secret") and (
            value.get("kind") == "Secret"
            or key.lower() in _KEYS
            or key.lower().endswith("secretref")
        )
        if is_secret and isinstance(name, str) and name:
            is_login = key == "identityRef" or "credential" in key.lower()
            yield _Reference(str(value.get("namespace") or namespace), name, is_login)
            return
        for inner, each in value.items():
            yield from _find_references(each, namespace, str(inner), depth + 1)
