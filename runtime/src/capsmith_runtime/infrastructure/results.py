"""Return values of infrastructure reconcilers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from capsmith_runtime.contract.model import Address, Endpoint, FailureDomain
from capsmith_runtime.reconcile.results import State, check_failure_domains, check_machine

_QUANTITY: Final = re.compile(
    r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class InfraClusterState(State):
    """State of the existing infrastructure of a cluster.

    A provisioned cluster stays provisioned; report a current problem with ``ready=False``, a reason
    and a message.
    """

    control_plane_endpoint: Endpoint | None = None
    """Endpoint of the control plane.  An endpoint that the user has set is kept."""
    failure_domains: Sequence[FailureDomain] = ()
    """At most 100, each name once."""

    def __post_init__(self) -> None:
        State.__post_init__(self)
        check_failure_domains(self.failure_domains)


@dataclass(frozen=True, slots=True, kw_only=True)
class InfraMachineState(State):
    """State of an existing machine.

    A provisioned machine stays provisioned; report a current problem with ``ready=False``, a reason
    and a message.
    """

    provider_id: str
    """Exactly the provider id of the Node; it never changes for a machine."""
    addresses: Sequence[Address] = ()
    """At most 256."""
    failure_domain: str | None = None
    """The failure domain in which the machine was created."""
    interruptible: bool = False
    """Whether the infrastructure may delete it at any time, like a spot instance."""

    def __post_init__(self) -> None:
        State.__post_init__(self)
        check_machine(self.provider_id, self.addresses)
        if self.failure_domain is not None and not 1 <= len(self.failure_domain) <= 256:
            raise ValueError("failure_domain must have 1 to 256 characters")


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineCapacity:
    """Capacity of one machine, with which the autoscaler scales up from zero (IM-16)."""

    resources: Mapping[str, str]
    """Kubernetes quantities: ``{"cpu": "4", "memory": "16Gi"}``."""
    architecture: Literal["amd64", "arm64", "s390x", "ppc64le"] | None = None
    """Architecture of its CPU; None if unknown."""
    operating_system: str | None = None
    """Such as ``linux``; None if unknown."""

    def __post_init__(self) -> None:
        for name, quantity in self.resources.items():
            if not _QUANTITY.fullmatch(quantity):
                raise ValueError(f"{name}: {quantity!r} is not a Kubernetes quantity")
