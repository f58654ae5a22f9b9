"""Names of the Secrets that objects refer to; what Secrets contain is never read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from capsmith.clusters.conditions import JSON, get_mapping

_ABOUT = re.compile(
    r"\bsecrets?\b|credential|\b401\b|unauthori[sz]ed|SecretNotFound", re.IGNORECASE
)
_NAMED = re.compile(r"\bsecrets? (?:\"([^\"]+)\"|(\S+/\S+))", re.IGNORECASE)
_KEYS = ("secret", "passwdfrom", "credentialsref")
_MAX_NAMES = 3
_MAX_DEPTH = 10


def add_secret_names(text: str, objects: Iterable[JSON]) -> str:
    """Return a text about credentials with the namespaces and names of the Secrets that it means.

    They are those that the first of the objects that names any refers to.  A text that names the
    Secret itself gets at most the namespace; any other text is returned unchanged.
    """
    if not _ABOUT.search(text):
        return text
    named = _NAMED.search(text)
    if named is not None and named[2]:
        return text
    found = next(filter(None, map(_list_secrets, objects)), [])
    if named is not None:
        found = [each for each in found if named[1] in re.split("[/ ]", each)]
    return f"{text} (Secret {', '.join(found)})" if found else text


def _list_secrets(obj: JSON) -> list[str]:
    """Return the first Secrets in an object's spec, each once."""
    namespace = str(get_mapping(obj.get("metadata")).get("namespace") or "")
    names = dict.fromkeys(_find_references(get_mapping(obj.get("spec")), namespace, "", 0))
    return list(islice(names, _MAX_NAMES))


def _find_references(value: object, namespace: str, key: str, depth: int) -> Iterator[str]:
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
            place = str(value.get("namespace") or namespace)
            yield f"{place}/{name}" if place else f"{name} in the manager's namespace"
            return
        for inner, each in value.items():
            yield from _find_references(each, namespace, str(inner), depth + 1)
