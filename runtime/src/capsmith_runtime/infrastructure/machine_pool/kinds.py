"""Descriptions of the kinds of machine pools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from capsmith_runtime.infrastructure.machine_pool_api import (
    InfraMachinePoolReconciler,
    MachinePoolMachinesReconciler,
)
from capsmith_runtime.kube.client import ResourceType
from capsmith_runtime.reconcile.kinds import Kind


# Without slots: Python 3.11 cannot make an object by Class[T](...) with them.
@dataclass(frozen=True, kw_only=True)
class MachinePoolMachinesKind(Kind[MachinePoolMachinesReconciler[Any]]):
    """A kind of machine pools whose machines have Machines (MP-07)."""

    machines: ResourceType
    """The kind of the machines."""
    machine_fields: tuple[str, ...]
    """The fields of the pool that are copied into each of its machines."""

    @property
    def failure_domain_annotation(self) -> str:
        """Name of the annotation with the failure domain of a machine."""
        return f"{self.resource.group}/failure-domain"

    @property
    def version_annotation(self) -> str:
        """Name of the annotation with the Kubernetes version of a machine."""
        return f"{self.resource.group}/pool-version"

    @property
    def spec_annotation(self) -> str:
        """Name of the annotation with digests of the spec from which a machine was created."""
        return f"{self.resource.group}/pool-spec"

    @property
    def count_annotation(self) -> str:
        """Name of the annotation with the number of the pool's next machine."""
        return f"{self.resource.group}/machines-made"


InfraMachinePoolKind = Kind[InfraMachinePoolReconciler[Any]]
"""A kind of machine pools without Machines."""
