"""Return values of infrastructure reconcilers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from capsmith_runtime.contract.model import (
    Address,
    Condition,
    Endpoint,
    FailureDomain,
    check_reason,
)
from capsmith_runtime.reconcile.results import check_conditions, check_machine

MAX_FAILURE_DOMAINS = 100
_QUANTITY: Final = re.compile(
    r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class InfraClusterState:
    """State of the existing infrastructure of a cluster.

    A provisioned cluster stays provisioned; report a current problem with ``ready=False``, a reason
    and a message.
    """

    control_plane_endpoint: Endpoint | None = None
    """Endpoint of the control plane.  An endpoint that the user has set is kept."""
    failure_domains: Sequence[FailureDomain] = ()
    ready: bool = True
    reason: str = ""
    """Reason of the Ready condition in CamelCase; by default Ready or NotReady."""
    message: str = ""
    conditions: Sequence[Condition] = ()
    """Additional conditions.  A condition that you no longer return is removed."""
    status: Any = None
    """Instance of the generated Status class, if the kind has status fields of its own."""
    requeue_after: float | None = None
    """Seconds until the next reconcile; by default the sync period."""

    def __post_init__(self) -> None:
        if self.reason:
            check_reason(self.reason)
        check_conditions(self.conditions)
        names = [domain.name for domain in self.failure_domains]
        if len(names) > MAX_FAILURE_DOMAINS or len(set(names)) < len(names):
            raise ValueError(
                f"failure_domains must be at most {MAX_FAILURE_DOMAINS}, each name once"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class InfraMachineState:
    """State of an existing machine.

    A provisioned machine stays provisioned; report a current problem with ``ready=False``, a reason
    and a message.
    """

    provider_id: str
    """Exactly the provider id of the Node; it never changes for a machine."""
    addresses: Sequence[Address] = ()
    failure_domain: str | None = None
    """The failure domain in which the machine was created."""
    interruptible: bool = False
    """Whether the infrastructure may delete it at any time, like a spot instance."""
    ready: bool = True
    reason: str = ""
    """Reason of the Ready condition in CamelCase; by default Ready or NotReady."""
    message: str = ""
    conditions: Sequence[Condition] = ()
    """Additional conditions.  A condition that you no longer return is removed."""
    status: Any = None
    """Instance of the generated Status class, if the kind has status fields of its own."""
    requeue_after: float | None = None
    """Seconds until the next reconcile; by default the sync period."""

    def __post_init__(self) -> None:
        if self.reason:
            check_reason(self.reason)
        check_conditions(self.conditions)
        check_machine(self.provider_id, self.addresses)
        if self.failure_domain is not None and not 1 <= len(self.failure_domain) <= 256:
            raise ValueError("failure_domain must have 1 to 256 characters")


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineCapacity:
    """Capacity of one machine, with which the autoscaler scales up from zero (IM-16)."""

    resources: Mapping[str, str]
    """Kubernetes quantities: ``{"cpu": "4", "memory": "16Gi"}``."""
    architecture: Literal["amd64", "arm64", "s390x", "ppc64le"] | None = None
    operating_system: str | None = None

    def __post_init__(self) -> None:
        for name, quantity in self.resources.items():
            if not _QUANTITY.fullmatch(quantity):
                raise ValueError(f"{name}: {quantity!r} is no Kubernetes quantity")
