"""Descriptions of an IPAM provider's kinds."""

from __future__ import annotations

from typing import Any

from capsmith_runtime.ipam.api import PoolReconciler
from capsmith_runtime.reconcile.kinds import Kind

PoolKind = Kind[PoolReconciler[Any]]
