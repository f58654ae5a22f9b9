"""The client of the SDK, opened once for each identity.

A reconciler that names the factory in ``session_factory`` gets the client from
``machine.session(ClientFactory)``.
"""

from __future__ import annotations

from types import ModuleType
from typing import Final

import requests
from capsmith_runtime.infrastructure import Credentials, SessionFactory

SDK: Final[ModuleType] = requests


class Client:
    """The calls that reconcilers make with the SDK; add a method for each, with your own types.

    All calls for one identity share a client and may run in several threads at once.
    """

    def __init__(self, credentials: Credentials) -> None:
        # Create the SDK's own client here, from SDK and values such as credentials["token"], with
        # a timeout for its requests and without retries of its own.  Clusters without an identity
        # have no values.
        self._credentials = credentials

    @property
    def identity(self) -> str:
        """Return the name of the identity whose credentials the client uses."""
        return self._credentials.identity


class ClientFactory(SessionFactory[Client]):
    """Opens a client when it is first needed, and again when the Secret has changed.

    If the SDK can tell which account or project a client belongs to, return it from a method
    ``account(self, session)``: objects record it, and a client of another account never touches
    them.
    """

    def open(self, credentials: Credentials) -> Client:
        """Return a client; do not send a request yet."""
        return Client(credentials)

    def close(self, session: Client) -> None:
        """Release the client's resources, such as connections."""
