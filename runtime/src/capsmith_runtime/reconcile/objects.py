"""Typed objects of kinds that implement Resource, for code that creates or reads them.

This module needs no client: generated classes add the kind with its spec and status.
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


# No slots, because Class[T](...) fails with slots in Python 3.11.
@dataclass(frozen=True, kw_only=True)
class CustomObject(Generic[Spec, Status]):
    """Base class for typed objects; ``_generated/api`` contains a class for each kind."""

    resource: ClassVar[ResourceType]
    """The kind's group, version and names."""
    spec_class: ClassVar[type[Any]]
    """The kind's generated Spec class."""
    status_class: ClassVar[type[Any] | None] = None
    """The kind's generated Status class, or None if provider.yaml declares no status fields."""

    name: str
    namespace: str = ""
    """Namespace of the object, or an empty string for a cluster-scoped kind."""
    spec: Spec
    """The object's spec, an instance of ``spec_class``."""
    status: Status | None = None
    """The status that the object's reconciler wrote, or None; it is never sent."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels of the object; ``cluster.x-k8s.io/cluster-name`` makes it belong to that Cluster."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    owner_references: Sequence[Mapping[str, Any]] = ()
    """Owners of the object, each created by a scope's ``owner_reference()``."""
    identity_ref: Mapping[str, str] | None = None
    """``kind`` and ``name`` of the identity, or None to use the infrastructure cluster's."""
    uid: str = ""
    """UID of the object, or an empty string until it is created."""
    deleting: bool = False
    """Whether the object is being deleted."""
    ready: bool | None = None
    """Status of the Ready condition if it is about the current spec, or None if unknown."""

    @classmethod
    def from_dict(cls, obj: Object) -> Self:
        """Create an object from its JSON.

        Raises DecodingError if spec or status cannot be decoded.
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
        """Return the object as JSON that can be created or applied."""
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
            # Empty fields are left out: applying them would take their ownership from other
            # managers.
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
