"""A bootstrap provider's reconciler, with its argument and results.

It generates bootstrap data: once for a Machine, and repeatedly for a MachinePool, because machines
that are added later need data that are still valid. Optionally, it renews the data of a Machine
whose server takes longer to start than a token in the data remains valid. The runtime handles
everything else: the Secret with its name and owner, the order of machines, and the status.
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
"""Purpose of a cluster's Secret with a certificate and its key (SEC-03)."""

MAX_DOCUMENT_BYTES: Final = 1_000_000
"""Maximum size of bootstrap data in bytes.

A Secret can hold 1 MiB; infrastructures often accept much less.
"""
_FORMAT: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class CertificatePair:
    """A certificate and its key in PEM; for the purpose ``sa``, a public and a private key."""

    certificate: str
    """The certificate; for the purpose ``sa``, the public key."""
    private_key: str | None = field(repr=False)
    """The private key, or None if it is kept outside the cluster.

    The key for the purpose ``ca`` gives full access to the cluster, so write it only to control
    plane machines.
    """


CertificateReader = Callable[[CertificatePurpose], Awaitable[CertificatePair]]


@dataclass(frozen=True, slots=True)
class BootstrapDocument:
    """The bootstrap data that a machine runs on first boot, and their format."""

    value: bytes = field(repr=False)
    """The data, from 1 to 1,000,000 bytes."""
    format: str = "cloud-config"
    """Format of the data: ``cloud-config``, ``ignition`` or another supported format."""
    refresh_after: float | None = None
    """Seconds after which the data must be renewed, because a token in them expires.

    For a pool, the data are then generated again (MP-19). For a Machine that has no Node yet,
    ``refresh_data`` is called if the reconciler has that method.
    """
    certificates_expiry: datetime | None = None
    """When a control plane machine's certificates expire, with a time zone.

    Control planes replace the machine before that time (BC-16).
    """
    status: Any = None
    """Instance of the generated Status class, or None to leave its fields unchanged."""

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


# No slots, because Class[T](...) fails with slots in Python 3.11.
@dataclass(frozen=True, kw_only=True)
class BootstrapConfigScope(SessionScope, Generic[Spec]):
    """A bootstrap configuration, and the Machine or MachinePool that needs its data."""

    spec: Spec
    """The configuration's spec, as an instance of the generated class."""
    cluster: Cluster
    """The Cluster that the machine or pool belongs to."""
    machine: Machine | None
    """The Machine that needs the data, or None if they are for a pool."""
    machine_pool: MachinePool | None
    """The MachinePool that needs the data, or None if they are for a Machine."""
    is_first_control_plane: bool
    """Whether this machine must initialise the cluster, which all other machines join.

    This is true for only one machine at a time; another machine can take its place only after the
    first one is gone.
    """
    node_taints: tuple[Taint, ...]
    """The taints with which to register the Node; core removes them later (BC-14)."""
    previous: BootstrapData | None
    """The current data of a pool, or of a Machine in ``refresh_data``, if there are any."""
    _certificates: CertificateReader = field(repr=False)
    _loop: asyncio.AbstractEventLoop | None = field(default=None, repr=False)

    @property
    def is_control_plane(self) -> bool:
        """Return whether the machine belongs to the control plane.

        A pool's machines are workers.
        """
        return self.machine is not None and self.machine.is_control_plane

    @property
    def version(self) -> str | None:
        """Return the Kubernetes version to install, or None if not set."""
        owner = self.machine or self.machine_pool
        return owner.version if owner is not None else None

    @property
    def endpoint(self) -> Endpoint:
        """Return the control plane's endpoint.

        Raises NotAvailableError until it is known; do not catch it, so that the configuration
        waits.
        """
        endpoint = self.cluster.control_plane_endpoint
        if endpoint is None:
            message = f"Cluster {self.cluster.name} has no control plane endpoint yet"
            raise NotAvailableError(Waiting(REASON_WAITING_FOR_ENDPOINT, message, None))
        return endpoint

    def certificate(self, purpose: CertificatePurpose) -> CertificatePair:
        """Return the certificate and key for a purpose; use this method in synchronous code.

        Each call sends a request to the API server and blocks the thread. Raises NotAvailableError
        if the certificate's Secret does not exist; do not catch it, so that the configuration waits
        for the Secret.
        """
        return wait_for(lambda: self._certificates(purpose), self._loop)

    async def certificate_async(self, purpose: CertificatePurpose) -> CertificatePair:
        """Return a certificate and key without blocking the event loop; see ``certificate``."""
        return await self._certificates(purpose)


class BootstrapConfigReconciler(SessionUser, ABC, Generic[Spec]):
    """Base class for reconcilers that generate the data for a machine's first boot."""

    @abstractmethod
    def bootstrap_data(
        self, config: BootstrapConfigScope[Spec]
    ) -> BootstrapDocument | Waiting | Awaitable[BootstrapDocument | Waiting]:
        """Return the bootstrap data for one machine, or for all of a pool's machines.

        The method may be ``def`` or ``async def``. It is called again if the process exits before
        the data are stored. An exception is reported in the Ready condition, and the call is
        retried.
        """

    def refresh_data(
        self, config: BootstrapConfigScope[Spec]
    ) -> BootstrapDocument | Waiting | Awaitable[BootstrapDocument | Waiting]:
        """Renew the data of a Machine that has not become a Node yet; optional.

        Until the Machine has a Node, the method is called whenever the ``refresh_after`` of the
        last document has passed. It is never called for the machine that initialises the cluster.
        If you were able to extend the validity of the token in ``config.previous``, return the
        previous value in a new document. Otherwise return new data, which replace those in the
        Secret. Without this method, the data of a Machine are never renewed.
        """
        raise NotImplementedError
