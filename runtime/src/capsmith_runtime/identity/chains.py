"""Chains of identities, each of which is derived from the next, and the namespaces they allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from capsmith_runtime.contract import constants, metadata
from capsmith_runtime.contract.model import Object
from capsmith_runtime.identity import references
from capsmith_runtime.identity.kinds import IdentityKind
from capsmith_runtime.identity.references import MAX_CHAIN
from capsmith_runtime.kube.client import JSON, NamespacedName, key_of
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.reconcile.results import Waiting


class Link(NamedTuple):
    """An identity in a chain of identities, of which each is derived from the next."""

    kind: IdentityKind
    identity: JSON

    def __str__(self) -> str:
        return f"{self.kind.resource.kind} {key_of(self.identity)}"


class IdentityChains:
    """Finds the identities that an object uses, if all of them allow its namespace."""

    def __init__(
        self,
        kinds: Sequence[IdentityKind],
        identities: Mapping[str, Informer],
        namespaces: Informer | None,
    ) -> None:
        """Initialise for the informers of the identities, by kind, and of namespaces."""
        self._kinds = tuple(kinds)
        self._identities = identities
        self._namespaces = namespaces

    def find(self, reference: Object, user: JSON) -> list[Link] | Waiting:
        """Return the identity that ``user`` refers to, followed by its sources.

        Returns Waiting if one of them is missing or does not allow the namespace.
        """
        namespace = metadata.namespace(user)
        found = self._find(reference, self._kinds, user, field="identityRef", namespace=namespace)
        return found if isinstance(found, Waiting) else self.find_sources(found, namespace)

    def find_in(self, namespace: str, kind: str, name: str) -> list[Link] | Waiting:
        """Return what :meth:`find` returns for a reference in a namespace to an identity."""
        return self.find({"kind": kind, "name": name}, {"metadata": {"namespace": namespace}})

    def _find(
        self,
        reference: Object,
        kinds: tuple[IdentityKind, ...],
        user: JSON,
        *,
        field: str,
        namespace: str | None,
    ) -> Link | Waiting:
        """Return the identity that ``field`` of an object's spec names, if it allows the namespace.

        ``namespace`` is None if it does not have to allow any.
        """
        kind, name = references.find_kind(kinds, reference), metadata.text(reference, "name")
        if kind is None:
            names = " or ".join(each.resource.kind for each in kinds)
            message = f"spec.{field}.kind must be {names}"
            return create_waiting(constants.REASON_IDENTITY_NOT_FOUND, message)
        key = kind.find_in(name, user)
        identity = self._identities[kind.resource.kind].get(key)
        if identity is None:
            message = f"{kind.resource.kind} {name} does not exist: create it with kubectl apply"
            return create_waiting(constants.REASON_IDENTITY_NOT_FOUND, message)
        # A namespaced identity was looked up in the namespace of its user, so nothing has to allow
        # it.
        is_allowed = namespace is None or kind.resource.namespaced
        if not (is_allowed or self._allows(identity, namespace or "")):
            allowed = f"namespace {namespace}" if namespace else "all namespaces"
            message = f"identity {name} does not allow {allowed}"
            return create_waiting(constants.REASON_IDENTITY_NOT_ALLOWED, message)
        return Link(kind, identity)

    def find_sources(self, first: Link, namespace: str | None) -> list[Link] | Waiting:
        """Return an identity, the one from which it is derived, the source of that one, etc.

        Each of them has to allow ``namespace``.
        """
        chain = [first]
        while reference := references.read_source(*chain[-1]):
            kind, identity = chain[-1]
            kinds = kind.select_sources(self._kinds)
            field = references.SOURCE_REF
            found = self._find(reference, kinds, identity, field=field, namespace=namespace)
            if isinstance(found, Waiting):
                message = f"{found.message} (source of {chain[-1]})"
                return create_waiting(found.reason, message)
            names = [str(each) for each in (*chain, found)]
            if str(found) in names[:-1]:
                message = f"identities are derived from each other: {', '.join(names)}"
                return create_waiting(constants.REASON_IDENTITY_CHAIN_INVALID, message)
            if len(names) > MAX_CHAIN:
                message = f"more than {MAX_CHAIN} identities are derived from one another"
                return create_waiting(constants.REASON_IDENTITY_CHAIN_INVALID, message)
            chain.append(found)
        return chain

    def _allows(self, identity: JSON, namespace: str) -> bool:
        """Return whether ``identity`` allows use from ``namespace``.

        Without ``spec.allowedNamespaces`` it allows no namespace, with an empty one it allows all.
        An empty ``namespace`` denotes a cluster-scoped user, which requires an identity that allows
        all.
        """
        allowed = metadata.lookup(identity, "spec", "allowedNamespaces")
        if not isinstance(allowed, Mapping):
            return False
        if not allowed:
            return True
        if namespace in metadata.items(allowed, "list"):
            return True
        labels = self._find_namespace_labels(namespace)
        chosen = allowed.get("selector")
        return (
            isinstance(chosen, Mapping)
            and labels is not None
            and metadata.is_selected(chosen, labels)
        )

    def _find_namespace_labels(self, namespace: str) -> Mapping[str, str] | None:
        """Return the labels of a namespace, or None if it is not cached."""
        obj = self._namespaces.get(NamespacedName("", namespace)) if self._namespaces else None
        return metadata.labels(obj) if obj is not None else None


def create_waiting(reason: str, message: str) -> Waiting:
    """Return a wait that ends when an identity, its Secret or a namespace changes."""
    return Waiting(reason, message, requeue_after=None)
