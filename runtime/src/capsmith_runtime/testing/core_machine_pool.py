"""Builder for the MachinePool that machine pool scopes refer to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from capsmith_runtime.contract.machine_pool import MachinePool
from capsmith_runtime.testing.core import NAMESPACE

VERSION: Final = "v1.34.0"
"""Kubernetes version of the MachinePool, unless a test sets another one."""


def core_machine_pool(name: str = "pool", **changes: Any) -> MachinePool:
    """Create a view of a MachinePool; ``changes`` replace its fields."""
    pool = MachinePool(
        name=name,
        namespace=NAMESPACE,
        uid=f"uid-of-{name}",
        labels={},
        annotations={},
        deleting=False,
        cluster_name="cluster",
        replicas=1,
        replicas_managed_elsewhere=False,
        version=VERSION,
        failure_domains=(),
        data_secret_name=f"{name}-bootstrap",
        infrastructure=None,
    )
    return replace(pool, **changes)
