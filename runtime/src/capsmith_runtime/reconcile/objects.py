"""Typed objects of kinds that implement Resource, for code that creates or reads them.

This module knows no client: generated classes add the kind with its spec and status.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Self, TypeVar

from capsmith_runtime.api.serialization import decode, encode
from capsmith_runtime.contract import conditions, constants, metadata
from capsmith_runtime.contract.model import Object
from capsmith_runtime.kube.client import JSON, ResourceType

__all__ = ["CustomObject", "ResourceType"]

Spec = TypeVar("Spec")
Status = TypeVar("Status")

_READY: Mapping[Any, bool] = {"True": True, "False": False}


# Without slots: Python 3.11 cannot make an object by Class[T](...) with them.
@dataclass(frozen=True, kw_only=True)
class CustomObject(Generic[Spec, Status]):
    """Base class of typed objects; the class for each kind is in ``_generated/api``."""

    resource: ClassVar[ResourceType]
    """Group, version and names of the kind."""
    spec_class: ClassVar[type[Any]]
    """The generated Spec class."""
    status_class: ClassVar[type[Any] | None] = None
    """The generated Status class; None for a kind without status fields of its own."""

    name: str
    namespace: str = ""
    """Empty for a cluster-scoped kind."""
    spec: Spec
    """An instance of ``spec_class``."""
    status: Status | None = None
    """Written by its reconciler; never sent."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """With ``cluster.x-k8s.io/cluster-name`` it belongs to that Cluster."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    owner_references: Sequence[Mapping[str, Any]] = ()
    """From ``owner_reference()`` of scopes."""
    identity_ref: Mapping[str, str] | None = None
    """``kind`` and ``name`` of the identity; by default that of its cluster's infrastructure."""
    uid: str = ""
    """Empty until it was created."""
    deleting: bool = False
    """Whether it is being deleted."""
    ready: bool | None = None
    """Status of its Ready condition for the current spec; None if that is not known yet."""

    @classmethod
    def from_dict(cls, obj: Object) -> Self:
        """Return an object from its JSON.

        Raises DecodingError if its spec or status cannot be read.
        """
        status: Any = None
        if cls.status_class is not None:
            status = decode(cls.status_class, metadata.mapping(obj, "status"), "status")
        return cls(
            name=metadata.name(obj),
            namespace=metadata.namespace(obj),
            spec=decode(cls.spec_class, metadata.mapping(obj, "spec"), "spec"),
            status=status,
            labels=metadata.labels(obj),
            annotations=metadata.annotations(obj),
            owner_references=metadata.items(obj, "metadata", "ownerReferences"),
            identity_ref=metadata.mapping(obj, "spec", "identityRef") or None,
            uid=metadata.uid(obj),
            deleting=metadata.is_deleting(obj),
            ready=_ready(obj),
        )

    def to_dict(self) -> JSON:
        """Return the object as JSON, with which it can be created or applied."""
        optional = {
            "namespace": self.namespace,
            "labels": dict(self.labels),
            "annotations": dict(self.annotations),
            "ownerReferences": [dict(reference) for reference in self.owner_references],
        }
        spec = encode(self.spec)
        if self.identity_ref is not None:
            spec["identityRef"] = dict(self.identity_ref)
        return {
            "apiVersion": self.resource.api_version,
            "kind": self.resource.kind,
            "metadata": {"name": self.name, **{k: v for k, v in optional.items() if v}},
            "spec": spec,
        }


def _ready(obj: Object) -> bool | None:
    found = conditions.find(metadata.items(obj, "status", "conditions"), constants.READY_CONDITION)
    # Conditions of contract v1beta1 have no generation.
    generation = metadata.generation(obj)
    if found is None or found.get("observedGeneration", generation) < generation:
        return None
    return _READY.get(found.get("status"))
