"""The permissions that provider.yaml declares for requests from the author's code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from capsmith_runtime.errors import InvalidRequestError, NotDeclaredError
from capsmith_runtime.kube.client import NamespacedName, ResourceType

_ANY: Final = "*"
_API_VERSION: Final = re.compile(
    r"(?:(?P<group>[a-z0-9][-a-z0-9.]{0,252})/)?(?P<version>v[a-z0-9]{1,62})"
)
_KIND: Final = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")
_NAMESPACE: Final = re.compile(r"(?:[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)?")
_NAME: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9._:]{0,252})")
"""Pattern of valid names, stricter than for a path segment.

A name that a user wrote must not lead to another URL path.
"""


class PolicyRule(NamedTuple):
    """An RBAC rule with the same fields as in Kubernetes."""

    groups: tuple[str, ...]
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()
    """Names of the objects that the rule applies to, or empty for all objects."""

    def allows(self, verb: str, group: str, resource: str, name: str) -> bool:
        """Return whether the rule allows a request; ``name`` is empty for a whole collection."""
        return (
            _has(self.verbs, verb)
            and _has(self.groups, group)
            and _has(self.resources, resource)
            and (not self.names or name in self.names)
        )


class Permissions:
    """Finds the resource types of kinds, and rejects requests that no rule allows."""

    def __init__(
        self, rules: Iterable[PolicyRule] = (), kinds: Iterable[ResourceType] = ()
    ) -> None:
        """Initialise with RBAC rules.

        ``kinds`` are the kinds whose plural is known; other plurals are guessed.
        """
        self._rules = tuple(rules)
        self._kinds = {(kind.group, kind.kind): kind for kind in kinds}

    def resource(self, api_version: str, kind: str) -> ResourceType:
        """Return a kind's resource type.

        Raises InvalidRequestError if the API version or the kind is malformed.
        """
        found = guess_resource_type(api_version, kind)
        known = self._kinds.get((found.group, kind))
        if known is not None:
            # In the requested version, which may differ from the version that the runtime itself
            # uses.
            return ResourceType(found.group, found.version, kind, known.plural, known.namespaced)
        candidates = set(guess_plurals(kind))
        for rule in self._rules:
            # The plural in a rule is what the author meant, while a guess may be wrong for
            # irregular nouns.
            if _has(rule.groups, found.group):
                for plural in rule.resources:
                    if plural.replace("-", "") in candidates:
                        return ResourceType(found.group, found.version, kind, plural)
        return found

    def check(self, resource: ResourceType, name: str, *verbs: str) -> None:
        """Raise NotDeclaredError unless the rules allow each of the ``verbs``."""
        for verb in verbs:
            # The name of a new object is not in the URL, so a rule with names cannot allow its
            # creation.
            name_of = "" if verbs == ("create",) else name
            if not any(
                rule.allows(verb, resource.group, resource.plural, name_of) for rule in self._rules
            ):
                raise NotDeclaredError(_advice(resource, verb))


class Anything(Permissions):
    """Unlimited permissions, as in workload clusters, where the API server decides."""

    def check(self, resource: ResourceType, name: str, *verbs: str) -> None:
        """Do nothing, because every request is allowed."""


def guess_resource_type(api_version: str, kind: str) -> ResourceType:
    """Return a resource type whose plural is guessed from the kind.

    Raises InvalidRequestError if the API version or the kind is malformed.
    """
    match = _API_VERSION.fullmatch(api_version)
    if match is None:
        raise InvalidRequestError(f"{api_version!r} is not an apiVersion such as v1 or apps/v1")
    if not _KIND.fullmatch(kind):
        raise InvalidRequestError(f"{kind!r} is not a kind such as ConfigMap")
    return ResourceType(match["group"] or "", match["version"], kind, next(guess_plurals(kind)))


def create_key(resource: ResourceType, namespace: str, name: str = "") -> NamespacedName:
    """Return the key of an object, after checking that its names are safe in a URL.

    Raises InvalidRequestError for names that no object can have.
    """
    if not _NAMESPACE.fullmatch(namespace) or (name and not _NAME.fullmatch(name)):
        shown = str(NamespacedName(namespace, name))
        raise InvalidRequestError(f"{shown!r} cannot be the name of a {resource.kind}")
    return NamespacedName(namespace if resource.namespaced else "", name)


def guess_plurals(kind: str) -> Iterator[str]:
    """Yield the plurals that a kind may have in URLs, most likely first."""
    word = kind.lower()
    if word.endswith(("s", "x", "z", "ch", "sh")):
        yield f"{word}es"
    elif word.endswith("y") and not word.endswith(("ay", "ey", "oy", "uy")):
        yield f"{word[:-1]}ies"
    # Also the forms that the rules do not predict: candidates are only compared with declared
    # plurals.
    yield f"{word}s"
    yield word
    yield f"{word}es"


def _has(declared: Sequence[str], value: str) -> bool:
    return value in declared or _ANY in declared


def _advice(resource: ResourceType, verb: str) -> str:
    rule = f'{{apiGroups: ["{resource.group}"], resources: [{resource.plural}], verbs: [{verb}]}}'
    return f"provider.yaml does not declare {verb} {resource.plural}: add {rule} to rbac"
