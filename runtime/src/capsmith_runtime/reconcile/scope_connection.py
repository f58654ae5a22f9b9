"""Connect the events and the client of a scope while the author's code runs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.constants import WATCH_FILTER_LABEL
from capsmith_runtime.kube.client import JSON, KubeClient
from capsmith_runtime.kube.events import EventRecorder
from capsmith_runtime.reconcile.client_session import ClientSession, Inherited, Owner, always
from capsmith_runtime.reconcile.events import send_events
from capsmith_runtime.reconcile.kubernetes_client import KubernetesClient, connect, disconnect
from capsmith_runtime.reconcile.permissions import Permissions


class Connections(Protocol):
    """What scopes are connected to."""

    @property
    def label(self) -> str:
        """Return the name of the provider, which is its field manager."""
        ...

    @property
    def client(self) -> KubeClient:
        """Return the client of the management cluster."""
        ...

    @property
    def events(self) -> EventRecorder:
        """Return the recorder of events."""
        ...

    @property
    def permissions(self) -> Permissions:
        """Return what the author's code may request."""
        ...


@contextmanager
def connected(scope: object, to: Connections, obj: JSON) -> Iterator[None]:
    """Connect the scope of an object; its clients send nothing after this context."""
    send_events(scope, to.events, obj)
    client = getattr(scope, "client", None)
    if isinstance(client, KubernetesClient):
        namespace: str = getattr(scope, "namespace", "")
        loop = asyncio.get_running_loop()
        owner = Owner(to.label, str(obj.get("kind")), metadata.name(obj), metadata.uid(obj))
        session = ClientSession(
            always(to.client), to.permissions, namespace, loop, _inherited_from(obj), owner
        )
        connect(client, session)
    try:
        yield
    finally:
        for each in (client, getattr(scope, "workload_client", None)):
            if isinstance(each, KubernetesClient):
                disconnect(each)


def _inherited_from(obj: JSON) -> Inherited:
    """Return the label without which a manager would not see what it creates (MG-01)."""
    group = metadata.text(obj, "apiVersion").rpartition("/")[0]
    value = metadata.labels(obj).get(WATCH_FILTER_LABEL)
    return Inherited(group, {} if value is None else {WATCH_FILTER_LABEL: value})
