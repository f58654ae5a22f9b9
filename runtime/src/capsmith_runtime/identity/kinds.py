"""Descriptions of identity kinds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.model import Object
from capsmith_runtime.kube.client import NamespacedName, ResourceType


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityKind:
    """A kind of identity, which refers to Secrets with credentials or has its own fields.

    A cluster-scoped identity lists the namespaces that may use it, and its Secret is in the
    manager's namespace.  A namespaced identity and its Secret are in the namespace that uses them.

    An identity may be derived from a source identity: for example, it names a role, which is
    assumed with the source's credentials.
    """

    resource: ResourceType
    keys: tuple[str, ...] = ()
    """Keys that the identity's Secret must have."""
    refers_to_secret: bool = True
    sources: tuple[str, ...] = ()
    """Kinds of the identities from which an identity may be derived; see ``sourceIdentityRef``."""

    def select_sources(self, kinds: Iterable[IdentityKind]) -> tuple[IdentityKind, ...]:
        """Return the ``kinds`` from which an identity of this kind may be derived."""
        return tuple(each for each in kinds if each.resource.kind in self.sources)

    def find_in(self, name: str, user: Object) -> NamespacedName:
        """Return the key of the identity called ``name``.

        ``user`` is the object that refers to the identity; a namespaced identity is in its
        namespace.
        """
        return NamespacedName(metadata.namespace(user) if self.resource.namespaced else "", name)
