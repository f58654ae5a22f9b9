"""Scope builders for unit tests of add-on providers; they need no API server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from capsmith_runtime.addon.api import AddonDeleteScope, AddonScope, Workload
from capsmith_runtime.kube.log import get_logger
from capsmith_runtime.reconcile.sessions import ScopeSession
from capsmith_runtime.testing.addon.objects import WorkloadObjects
from capsmith_runtime.testing.core import NAMESPACE, core_cluster, given_credentials, spec_from

__all__ = [
    "WorkloadObjects",
    "addon",
    "addon_deletion",
    "core_cluster",
    "spec_from",
    "workload",
]


Spec = TypeVar("Spec")


def workload(objects: WorkloadObjects) -> Workload:
    """Create a client for a fake workload cluster that contains these objects."""

    async def kubeconfig() -> bytes:
        return b"apiVersion: v1\nkind: Config\n"

    api: Any = objects
    return Workload(api, kubeconfig)


def addon(
    spec: Spec,
    name: str = "addon",
    *,
    credentials: Mapping[str, str] | None = None,
    session: object = None,
) -> AddonScope[Spec]:
    """Create the scope to pass to ``reconcile_normal`` for an add-on with this spec."""
    return AddonScope(
        name=name,
        namespace=NAMESPACE,
        external_id=f"{name}.0001",
        logger=get_logger("test"),
        spec=spec,
        credentials=given_credentials(credentials),
        _session=ScopeSession(session),
    )


def addon_deletion(
    spec: Spec,
    name: str = "addon",
    *,
    credentials: Mapping[str, str] | None = None,
    session: object = None,
) -> AddonDeleteScope[Spec]:
    """Create the scope to pass to ``reconcile_delete`` for an add-on with this spec."""
    return AddonDeleteScope(
        name=name,
        namespace=NAMESPACE,
        external_id=f"{name}.0001",
        logger=get_logger("test"),
        _spec=spec,
        _credentials=given_credentials(credentials),
        _session=ScopeSession(session),
    )
