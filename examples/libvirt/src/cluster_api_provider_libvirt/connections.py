"""Connections to hosts, and errors of libvirt as errors with a reason for the Ready condition."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from capsmith_runtime.infrastructure import Credentials, ReconcileError, SessionFactory

import libvirt

# libvirt writes each error to standard error otherwise, also those that are expected here.
libvirt.registerErrorHandler(lambda _context, _error: None, None)


class Hosts:
    """One connection for each URI; several threads may use it at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connections: dict[str, libvirt.virConnect] = {}

    def connect(self, uri: str) -> libvirt.virConnect:
        """Return the connection to a host; open it again if it was lost."""
        with self._lock:
            connection = self._connections.get(uri)
            if connection is None or not connection.isAlive():
                connection = self._connections[uri] = libvirt.open(uri)
            return connection

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections.values():
            connection.close()


class HostSessions(SessionFactory[Hosts]):
    """Keeps the connections of all reconcilers."""

    def open(self, credentials: Credentials) -> Hosts:
        """Return connections, none of them open yet."""
        return Hosts()

    def close(self, session: Hosts) -> None:
        """Close the connections."""
        session.close()


@contextmanager
def reported_errors() -> Iterator[None]:
    """Raise errors of libvirt as errors of the runtime; all of them are repeated."""
    try:
        yield
    except libvirt.libvirtError as error:
        raise ReconcileError("LibvirtError", str(error)) from error


@contextmanager
def ignored_errors(*codes: int) -> Iterator[None]:
    """Ignore errors of libvirt with these codes."""
    try:
        yield
    except libvirt.libvirtError as error:
        if error.get_error_code() not in codes:
            raise
