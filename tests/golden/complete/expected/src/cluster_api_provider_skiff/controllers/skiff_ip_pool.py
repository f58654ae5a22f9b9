"""Pools that addresses come from."""

from __future__ import annotations

from .. import RangePoolReconciler
from .._generated.api.skiff_ip_pool import SkiffIPPoolSpec


class SkiffIPPoolReconciler(RangePoolReconciler[SkiffIPPoolSpec]):
    """Pools hand out the ranges in their spec; there is nothing to write for that.

    To take the ranges from elsewhere, override ``reconcile_normal``. When another system hands out
    the addresses, derive from ExternalPoolReconciler, and switch the feature ``ranges`` off in
    provider.yaml.
    """
