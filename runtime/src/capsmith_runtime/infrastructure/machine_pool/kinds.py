"""Descriptions of machine pool kinds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from capsmith_runtime.infrastructure.machine_pool_api import (
    InfraMachinePoolReconciler,
    MachinePoolMachinesReconciler,
)
from capsmith_runtime.kube.client import ResourceType
from capsmith_runtime.reconcile.kinds import Kind


# No slots, because Class[T](...) fails with slots in Python 3.11.
@dataclass(frozen=True, kw_only=True)
class MachinePoolMachinesKind(Kind[MachinePoolMachinesReconciler[Any]]):
    """A kind of machine pool whose machines have Machines (MP-07)."""

    machines: ResourceType
    """The resource type of the pool's infrastructure machines."""
    machine_fields: tuple[str, ...]
    """Names of the pool's spec fields that are copied into each of its machines."""

    @property
    def failure_domain_annotation(self) -> str:
        """Return the name of the annotation that holds a machine's failure domain."""
        return f"{self.resource.group}/failure-domain"

    @property
    def version_annotation(self) -> str:
        """Return the name of the annotation that holds a machine's Kubernetes version."""
        return f"{self.resource.group}/pool-version"

    @property
    def spec_annotation(self) -> str:
        """Return the name of the annotation with digests of the spec used to create a machine."""
        return f"{self.resource.group}/pool-spec"

    @property
    def count_annotation(self) -> str:
        """Return the name of the pool annotation that stores the number of the next machine."""
        return f"{self.resource.group}/machines-made"


InfraMachinePoolKind = Kind[InfraMachinePoolReconciler[Any]]
"""A kind of machine pool without Machines."""
