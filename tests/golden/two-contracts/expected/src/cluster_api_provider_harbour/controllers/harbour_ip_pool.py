"""Pools of IP addresses."""

from __future__ import annotations

from capsmith_runtime.ipam import RangePoolReconciler

from .._generated.api.harbour_ip_pool import HarbourIPPoolSpec


class HarbourIPPoolReconciler(RangePoolReconciler[HarbourIPPoolSpec]):
    """Pools allocate addresses from the ranges in their spec; this needs no code.

    To read the ranges from another place, override ``reconcile_normal``. If another system
    allocates the addresses, derive from ExternalPoolReconciler, and switch the feature ``ranges``
    off in provider.yaml.
    """
