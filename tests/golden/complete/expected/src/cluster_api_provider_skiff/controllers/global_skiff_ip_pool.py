"""Pools of IP addresses."""

from __future__ import annotations

from capsmith_runtime.ipam import RangePoolReconciler

from .._generated.api.global_skiff_ip_pool import GlobalSkiffIPPoolSpec


class GlobalSkiffIPPoolReconciler(RangePoolReconciler[GlobalSkiffIPPoolSpec]):
    """Pools allocate addresses from the ranges in their spec; this needs no code.

    To read the ranges from another place, override ``reconcile_normal``. If another system
    allocates the addresses, derive from ExternalPoolReconciler, and switch the feature ``ranges``
    off in provider.yaml.
    """
