"""Environments in which a reconciler of the test's own serves pools without Machines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from capsmith_runtime.infrastructure.machine_pool.controllers import MachinePoolKinds
from capsmith_runtime.infrastructure.machine_pool_api import InfraMachinePoolReconciler
from capsmith_runtime.testing.conformance.machine_pool.base import PoolCase
from capsmith_runtime.testing.machine_pool.environment import MachinePoolEnvironment
from capsmith_runtime.testing.provider import InfrastructureDouble, replace_group


def build_environment(
    case: PoolCase,
    infrastructure: InfrastructureDouble,
    reconciler: InfraMachinePoolReconciler[Any],
) -> MachinePoolEnvironment:
    """Return a management cluster with a running cluster, whose pools ``reconciler`` serves."""
    scripted = replace(case.kind, reconciler=cast(Any, lambda: reconciler))
    controllers = replace(case.controllers, pools=MachinePoolKinds(whole=(scripted,)))
    return MachinePoolEnvironment(
        case.provider,
        replace_group(case.component, case.controllers, controllers),
        case.core_version,
        infrastructure=infrastructure,
        controllers=controllers,
        kind=scripted,
    )
