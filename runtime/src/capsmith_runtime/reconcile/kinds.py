"""Descriptions of the kinds that a manager serves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from capsmith_runtime.contract import constants, external_id
from capsmith_runtime.contract.constants import ADDRESS_KIND, CLAIM_KIND, IPAM_GROUP
from capsmith_runtime.contract.model import Object
from capsmith_runtime.kube.client import ResourceType


def claim_type(version: str) -> ResourceType:
    """Return the resource type of IPAddressClaims in a version of ipam.cluster.x-k8s.io."""
    return ResourceType(IPAM_GROUP, version, CLAIM_KIND, "ipaddressclaims")


def address_type(version: str) -> ResourceType:
    """Return the resource type of IPAddresses in a version of ipam.cluster.x-k8s.io."""
    return ResourceType(IPAM_GROUP, version, ADDRESS_KIND, "ipaddresses")


R = TypeVar("R")

CREDENTIALS_FEATURE: Final = "credentials"
"""Feature of kinds whose objects refer to an identity with ``spec.identityRef``."""

SECRET: Final = ResourceType("", "v1", "Secret", "secrets")
NAMESPACE: Final = ResourceType("", "v1", "Namespace", "namespaces", namespaced=False)


def core_type(version: str, kind: str, plural: str) -> ResourceType:
    """Return the resource type of a core kind in the API version that was chosen at startup."""
    return ResourceType(constants.CORE_GROUP, version, kind, plural)


# No slots, because Class[T](...) fails with slots in Python 3.11.
@dataclass(frozen=True, kw_only=True)
class Kind(Generic[R]):
    """One of the provider's kinds, with the reconciler that serves it."""

    resource: ResourceType
    finalizer: str
    features: frozenset[str]
    """Optional features of the contract that the kind implements."""
    spec: type[Any]
    """Dataclass of the kind's spec."""
    reconciler: type[R]
    template: ResourceType | None = None
    """Resource type of the template kind, or None if its status is never written."""
    has_other_versions: bool = False
    """Whether references to an object may use an API version other than the storage version."""

    def external_id(self, obj: Object) -> str:
        """Return the external id that identifies the infrastructure of an object of this kind."""
        return external_id.of(obj, self.resource.group)
