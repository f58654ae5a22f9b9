"""Connections to hosts, and errors of libvirt as errors with a reason for the Ready condition."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from capsmith_runtime.infrastructure import Changes, Credentials, ReconcileError, SessionFactory

import libvirt

_log = logging.getLogger(__name__)
_PAUSE = 1.0
"""Seconds to wait after an error of the event loop, which may persist."""

# libvirt writes each error to standard error otherwise, also those that are expected here.
libvirt.registerErrorHandler(lambda _context, _error: None, None)
# Only connections that are opened afterwards have events.
libvirt.virEventRegisterDefaultImpl()


class Hosts:
    """One connection for each URI; several threads may use it at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._locks: dict[str, threading.Lock] = {}
        """By URI, as a host that does not answer must not keep the others waiting."""
        self._connections: dict[str, tuple[libvirt.virConnect, int]] = {}
        """Connection and id of its registration for events, by URI."""
        self._listener: Callable[[str], None] | None = None

    def connect(self, uri: str) -> libvirt.virConnect:
        """Return the connection to a host; open it again if it was lost."""
        with self._lock:
            lock = self._locks.setdefault(uri, threading.Lock())
        with lock:
            if uri in self._connections:
                connection, registration = self._connections[uri]
                if connection.isAlive():
                    return connection
                del self._connections[uri]
                _close(connection, registration)
            _event_loop.start()
            connection = libvirt.open(uri)
            kind = libvirt.VIR_DOMAIN_EVENT_ID_LIFECYCLE
            registration = connection.domainEventRegisterAny(None, kind, self._on_event, None)
            self._connections[uri] = (connection, registration)
            return connection

    def listen(self, listener: Callable[[str], None] | None) -> None:
        """Call ``listener`` with the name of each domain that starts, stops or is deleted.

        It is called in another thread; None ends that. Events during a lost connection are missed.
        """
        self._listener = listener

    def close(self) -> None:
        """Close all connections."""
        for connection, registration in self._connections.values():
            _close(connection, registration)

    def _on_event(
        self, _host: object, domain: libvirt.virDomain, event: int, _detail: int, _opaque: object
    ) -> None:
        listener = self._listener
        # A new definition changes neither the state nor an address.
        if listener is not None and event != libvirt.VIR_DOMAIN_EVENT_DEFINED:
            listener(domain.name())


class HostSessions(SessionFactory[Hosts]):
    """Keeps the connections of all reconcilers."""

    def open(self, credentials: Credentials) -> Hosts:
        """Return connections, none of them open yet."""
        return Hosts()

    def close(self, session: Hosts) -> None:
        """Close the connections."""
        session.close()

    async def watch(self, session: Hosts, changes: Changes) -> None:
        """Report domains that start, stop or are deleted, also by the host or an administrator."""
        # A domain has the short id of its machine as its name.
        session.listen(lambda name: changes.report(short_id=name))
        try:
            # libvirt calls back: there is nothing to do until the runtime cancels this method.
            await asyncio.Event().wait()
        finally:
            session.listen(None)


def _close(connection: libvirt.virConnect, registration: int) -> None:
    # libvirt keeps a connection as long as there are registrations; a lost one refuses both calls.
    with suppress(libvirt.libvirtError):
        connection.domainEventDeregisterAny(registration)
    with suppress(libvirt.libvirtError):
        connection.close()


class EventLoop:
    """Delivers the events of all connections in one thread, until the process ends."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread if it does not run yet."""
        with self.lock:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="libvirt-events", daemon=True
                )
                self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                libvirt.virEventRunDefaultImpl()
            except libvirt.libvirtError:
                _log.exception("libvirt cannot deliver events; trying again")
                time.sleep(_PAUSE)


_event_loop = EventLoop()


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
