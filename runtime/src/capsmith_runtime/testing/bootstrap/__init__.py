"""Scope builders for unit tests of bootstrap providers; they need no API server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from capsmith_runtime.bootstrap.api import (
    BootstrapConfigScope,
    CertificatePair,
    CertificatePurpose,
    CertificateReader,
)
from capsmith_runtime.contract.bootstrap import REASON_WAITING_FOR_CERTIFICATES, UNINITIALIZED_TAINT
from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.contract.machine_pool import MachinePool, read_machine_pool
from capsmith_runtime.contract.model import Endpoint
from capsmith_runtime.kube.log import get_logger
from capsmith_runtime.reconcile.results import NotAvailableError, Waiting
from capsmith_runtime.reconcile.scopes import BootstrapData
from capsmith_runtime.reconcile.sessions import ScopeSession
from capsmith_runtime.testing.bootstrap.certificates import PURPOSES, certificate_of
from capsmith_runtime.testing.core import NAMESPACE, core_cluster, core_machine, spec_from
from capsmith_runtime.testing.core_machine_pool import core_machine_pool

__all__ = [
    "CERTIFICATES",
    "bootstrap_config",
    "core_cluster",
    "core_machine",
    "core_machine_pool",
    "pool_bootstrap_config",
    "spec_from",
]


Spec = TypeVar("Spec")
Certificates = Mapping[CertificatePurpose, CertificatePair]

CERTIFICATES: Certificates = {purpose: certificate_of(purpose) for purpose in PURPOSES}
"""The builders' default certificates, keyed by purpose.

They are valid PEM if the library ``cryptography`` is installed.
"""


def bootstrap_config(
    spec: Spec,
    name: str = "machine",
    *,
    is_control_plane: bool = False,
    is_first: bool = False,
    cluster: Cluster | None = None,
    previous: BootstrapData | None = None,
    certificates: Certificates = CERTIFICATES,
    session: object = None,
) -> BootstrapConfigScope[Spec]:
    """Create the scope to pass to ``bootstrap_data`` or ``refresh_data`` for a Machine."""
    return BootstrapConfigScope(
        name=name,
        namespace=NAMESPACE,
        external_id=f"{name}.0001",
        logger=get_logger("test"),
        spec=spec,
        cluster=cluster or _cluster(),
        machine=core_machine(name, is_control_plane=is_control_plane, data_secret_name=None),
        machine_pool=None,
        is_first_control_plane=is_first,
        node_taints=() if is_control_plane else (UNINITIALIZED_TAINT,),
        previous=previous,
        _certificates=_reader(certificates),
        _session=ScopeSession(session),
    )


def pool_bootstrap_config(
    spec: Spec,
    name: str = "pool",
    *,
    previous: BootstrapData | None = None,
    cluster: Cluster | None = None,
    certificates: Certificates = CERTIFICATES,
    session: object = None,
) -> BootstrapConfigScope[Spec]:
    """Create the scope to pass to ``bootstrap_data`` for a MachinePool."""
    return BootstrapConfigScope(
        name=name,
        namespace=NAMESPACE,
        external_id=f"{name}.0001",
        logger=get_logger("test"),
        spec=spec,
        cluster=cluster or _cluster(),
        machine=None,
        machine_pool=_pool(name),
        is_first_control_plane=False,
        node_taints=(UNINITIALIZED_TAINT,),
        previous=previous,
        _certificates=_reader(certificates),
        _session=ScopeSession(session),
    )


def _cluster() -> Cluster:
    endpoint = Endpoint("192.0.2.10", 6443)
    return core_cluster(
        control_plane_endpoint=endpoint, pod_cidrs=("10.0.0.0/16",), service_cidrs=("10.1.0.0/16",)
    )


def _pool(name: str) -> MachinePool:
    template = {"spec": {"version": "v1.34.0", "bootstrap": {}}}
    return read_machine_pool(
        {
            "metadata": {"name": name, "namespace": NAMESPACE, "uid": f"uid-of-{name}"},
            "spec": {"clusterName": "cluster", "replicas": 1, "template": template},
        }
    )


def _reader(certificates: Certificates) -> CertificateReader:
    async def read(purpose: CertificatePurpose) -> CertificatePair:
        if purpose not in certificates:
            raise NotAvailableError(Waiting(REASON_WAITING_FOR_CERTIFICATES, purpose))
        return certificates[purpose]

    return read
