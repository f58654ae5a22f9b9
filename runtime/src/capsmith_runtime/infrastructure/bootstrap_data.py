"""Read the bootstrap data of machines, with one request for each call."""

from __future__ import annotations

import base64
from typing import Protocol

from capsmith_runtime.contract import constants, metadata
from capsmith_runtime.errors import NotFoundError
from capsmith_runtime.kube.client import KubeClient, NamespacedName
from capsmith_runtime.reconcile.kinds import SECRET
from capsmith_runtime.reconcile.results import NotAvailableError, Waiting
from capsmith_runtime.reconcile.scopes import BootstrapData, BootstrapReader

DEFAULT_FORMAT = "cloud-config"


class Owner(Protocol):
    """Owner of bootstrap data: a Machine or a MachinePool."""

    @property
    def name(self) -> str:
        """Return its name."""
        ...

    @property
    def namespace(self) -> str:
        """Return its namespace, which is also that of the Secret."""
        ...

    @property
    def data_secret_name(self) -> str | None:
        """Return the name of the Secret with the data."""
        ...


def bootstrap_reader(client: KubeClient, owner: Owner) -> BootstrapReader:
    """Return a function that reads the bootstrap data of a Machine or MachinePool."""

    async def read() -> BootstrapData:
        name = owner.data_secret_name
        if not name:
            # A Machine of a deleted MachinePool: it used the bootstrap data of the pool (IM-21).
            raise _missing(f"{owner.name} does not name a bootstrap Secret")
        try:
            secret = await client.get(SECRET, NamespacedName(owner.namespace, name))
        except NotFoundError:
            raise _missing(f"Secret {name} does not exist") from None
        data = metadata.mapping(secret, "data")
        if "value" not in data:
            raise _missing(f'Secret {name} has no key "value"')
        # Bytes, not text: bootstrap data may be compressed.
        kind = base64.b64decode(data.get("format", "")).decode()
        return BootstrapData(base64.b64decode(data["value"]), kind or DEFAULT_FORMAT)

    return read


def _missing(message: str) -> NotAvailableError:
    return NotAvailableError(Waiting(constants.REASON_WAITING_FOR_BOOTSTRAP, message))
