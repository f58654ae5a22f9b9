"""Descriptions of ControlPlane kinds that consist of Machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from capsmith_runtime.contract.field_paths import FieldPaths
from capsmith_runtime.controlplane.api import ControlPlaneReconciler
from capsmith_runtime.reconcile.kinds import Kind


# Without slots, like its base class.
@dataclass(frozen=True, kw_only=True)
class ControlPlaneKind(Kind[ControlPlaneReconciler[Any]]):
    """A ControlPlane kind, and the kind of its Machines' bootstrap configurations."""

    bootstrap_group: str
    bootstrap_kind: str
    field_paths: FieldPaths = ()
    """Fields of the contract that the CRD has at other paths."""
