"""The reconciler of a bootstrap provider, with its argument and results.

Its only method generates bootstrap data: once for a Machine, and repeatedly for a MachinePool,
whose later machines need data that are still valid.  The runtime handles everything else: the
Secret with its name and owner, the order of machines, and the status.
"""

from __future__ import annotations

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Generic, Literal, TypeVar

from capsmith_runtime.contract.bootstrap import REASON_WAITING_FOR_ENDPOINT, Taint
from capsmith_runtime.contract.core import Cluster, Machine
from capsmith_runtime.contract.machine_pool import MachinePool
from capsmith_runtime.contract.model import Endpoint
from capsmith_runtime.reconcile.kubernetes_client import wait_for
from capsmith_runtime.reconcile.results import NotAvailableError, Waiting
from capsmith_runtime.reconcile.scopes import BootstrapData, SessionScope
from capsmith_runtime.reconcile.sessions import SessionUser

Spec = TypeVar("Spec")

CertificatePurpose = Literal["ca", "etcd", "proxy", "sa", "apiserver-etcd-client"]
"""The purposes of the Secrets with a certificate and its key of a cluster (SEC-03)."""

MAX_DOCUMENT_BYTES: Final = 1_000_000
"""A Secret holds 1 MiB; infrastructures often accept far less."""
_FORMAT: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class CertificatePair:
    """A certificate and its key in PEM; for the purpose ``sa``, a public and a private key."""

    certificate: str
    """The certificate; for the purpose ``sa`` the public key."""
    private_key: str | None = field(repr=False)
    """None when it is kept outside of the cluster.  The key of ``ca`` gives full access to the
    cluster: give it to control plane machines only."""


CertificateReader = Callable[[CertificatePurpose], Awaitable[CertificatePair]]


@dataclass(frozen=True, slots=True)
class BootstrapDocument:
    """The bootstrap data that a machine runs at its first start, and their format."""

    value: bytes = field(repr=False)
    """The data, from 1 to 1,000,000 bytes."""
    format: str = "cloud-config"
    """``cloud-config``, ``ignition``, or another format that your infrastructures support."""
    refresh_after: float | None = None
    """Seconds until the data of a pool are generated again, because a token in them expires; only
    for a MachinePool, as the data of a Machine are used once (MP-19)."""
    certificates_expiry: datetime | None = None
    """When the certificates of a control plane machine expire, with a time zone: control planes
    replace the machine before that (BC-16)."""
    status: Any = None
    """An instance of the kind's generated Status class, if it has status fields of its own."""

    def __post_init__(self) -> None:
        if not isinstance(self.value, bytes):
            raise TypeError(f"bootstrap data must be bytes, not {type(self.value).__name__}")
        if not 1 <= len(self.value) <= MAX_DOCUMENT_BYTES:
            raise ValueError(f"bootstrap data must have 1 to {MAX_DOCUMENT_BYTES} bytes")
        if not _FORMAT.fullmatch(self.format):
            raise ValueError(f"a format must be one word such as cloud-config, not {self.format!r}")
        if self.refresh_after is not None and self.refresh_after < 1:
            raise ValueError(f"refresh_after must be a second or more, not {self.refresh_after}")
        if self.certificates_expiry is not None and self.certificates_expiry.tzinfo is None:
            raise ValueError("certificates_expiry must have a time zone")


# Without slots: Python 3.11 cannot make an object by Class[T](...) with them.
@dataclass(frozen=True, kw_only=True)
class BootstrapConfigScope(SessionScope, Generic[Spec]):
    """A bootstrap configuration, and the Machine or MachinePool that needs its data."""

    spec: Spec
    """The spec, as an instance of the generated class."""
    cluster: Cluster
    """The Cluster that the machine or the pool belongs to."""
    machine: Machine | None
    """None when the data are for a pool."""
    machine_pool: MachinePool | None
    """None when the data are for a Machine."""
    is_first_control_plane: bool
    """Whether this machine has to initialise the cluster; all others join it.

    It is true for one machine at a time: for a second one only after the first is gone.
    """
    node_taints: tuple[Taint, ...]
    """The taints to register the Node with; core removes them later (BC-14)."""
    previous: BootstrapData | None
    """The current data of a pool; None when there are none yet."""
    _certificates: CertificateReader = field(repr=False)
    _loop: asyncio.AbstractEventLoop | None = field(default=None, repr=False)

    @property
    def is_control_plane(self) -> bool:
        """Whether the machine belongs to the control plane; machines of pools are workers."""
        return self.machine is not None and self.machine.is_control_plane

    @property
    def version(self) -> str | None:
        """The Kubernetes version to install."""
        owner = self.machine or self.machine_pool
        return owner.version if owner is not None else None

    @property
    def endpoint(self) -> Endpoint:
        """The endpoint of the control plane.

        Raises NotAvailableError until it is known; let it propagate, to wait for the endpoint.
        """
        endpoint = self.cluster.control_plane_endpoint
        if endpoint is None:
            message = f"Cluster {self.cluster.name} has no control plane endpoint yet"
            raise NotAvailableError(Waiting(REASON_WAITING_FOR_ENDPOINT, message, None))
        return endpoint

    def certificate(self, purpose: CertificatePurpose) -> CertificatePair:
        """Return a certificate of the cluster, in synchronous code; each call is a request.

        Raises NotAvailableError if its Secret does not exist; let it propagate, to wait for the
        Secret.
        """
        return wait_for(lambda: self._certificates(purpose), self._loop)

    async def certificate_async(self, purpose: CertificatePurpose) -> CertificatePair:
        """Return a certificate of the cluster, in asynchronous code; see ``certificate``."""
        return await self._certificates(purpose)


class BootstrapConfigReconciler(SessionUser, ABC, Generic[Spec]):
    """Base class of reconcilers that generate the data of a machine's first start."""

    @abstractmethod
    def bootstrap_data(
        self, config: BootstrapConfigScope[Spec]
    ) -> BootstrapDocument | Waiting | Awaitable[BootstrapDocument | Waiting]:
        """Return the data of one machine, or of all machines of a pool.

        The method may be ``def`` or ``async def``.  It is called again if the process ends before
        the result is stored.  An exception is reported in the Ready condition and retried later.
        """
