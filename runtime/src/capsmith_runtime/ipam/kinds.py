"""Kinds of an IPAM provider."""

from __future__ import annotations

from typing import Any

from capsmith_runtime.ipam.api import PoolReconciler
from capsmith_runtime.reconcile.kinds import Kind

PoolKind = Kind[PoolReconciler[Any]]
