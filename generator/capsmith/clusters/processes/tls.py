"""Connections to an API server: what they trust, and how long a request may take."""

from __future__ import annotations

import http.client
import ssl
import time
from pathlib import Path
from typing import Any

REQUEST_SECONDS = 60.0
"""Maximum time without a byte from the server."""
_TOTAL_SECONDS = 120.0
"""Maximum time from a request to the end of its response; an API server ends one after 60."""


class TotalTimeoutError(TimeoutError):
    """Raised for a response that is not complete in time, however often something arrives."""


class _TimedSocket(ssl.SSLSocket):
    """A socket whose reads and writes must all be done before a deadline.

    The timeout of a socket begins again with each byte, so that a server that sends one byte a
    minute would never exceed it.
    """

    deadline: float | None = None
    """When the current request must be complete; None without a limit."""

    def recv_into(self, *args: Any, **options: Any) -> int:
        self._limit()
        return super().recv_into(*args, **options)

    def send(self, *args: Any, **options: Any) -> int:
        self._limit()
        return super().send(*args, **options)

    def _limit(self) -> None:
        if self.deadline is not None:
            left = self.deadline - time.monotonic()
            if left <= 0:
                raise TotalTimeoutError(f"no complete response within {_TOTAL_SECONDS:g} seconds")
            self.settimeout(min(REQUEST_SECONDS, left))


def set_deadline(connection: http.client.HTTPSConnection) -> None:
    """Connect if there is no connection, and limit the time for the next request."""
    if connection.sock is None:
        connection.connect()
    if isinstance(connection.sock, _TimedSocket):
        connection.sock.deadline = time.monotonic() + _TOTAL_SECONDS


def create_api_server_context(authority: Path) -> ssl.SSLContext:
    """Return a TLS context that verifies the API server's certificate as Go clients do.

    ``authority`` is the path to the CA bundle.  Raises OSError if it cannot be read.
    """
    context = ssl.create_default_context(cafile=str(authority))
    context.sslsocket_class = _TimedSocket
    # Since Python 3.13 this flag is set by default (https://docs.python.org/3.13/library/ssl.html,
    # ssl.create_default_context).  It rejects certificates without key identifiers, such as those
    # of EKS (https://github.com/kubernetes-client/python/issues/2394), and authorities without key
    # usage.  kubectl and core accept them, so capsmith must as well.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
