"""The client of the SDK, opened once for each identity.

A reconciler that names the factory in ``session_factory`` gets the client by
``machine.session(ClientFactory)``.
"""

from __future__ import annotations

from types import ModuleType
from typing import Final

import requests
from capsmith_runtime.infrastructure import Credentials, SessionFactory

SDK: Final[ModuleType] = requests


class Client:
    """What reconcilers need of the SDK: add a method for each call, with types of your own.

    All calls of one identity share it, in several threads.
    """

    def __init__(self, credentials: Credentials) -> None:
        # Create the SDK's own client here, from SDK and values such as credentials["token"], with
        # a time limit for its requests.  Clusters without identity have no values.
        self._credentials = credentials

    @property
    def identity(self) -> str:
        """Return the name of the identity whose credentials the client has."""
        return self._credentials.identity


class ClientFactory(SessionFactory[Client]):
    """Opens a client when it is needed first, and again when the Secret has changed.

    If the SDK can say to which account or project a client belongs, return that from a method
    ``account(self, session)``: objects record it, and a client of another account touches none of
    them.
    """

    def open(self, credentials: Credentials) -> Client:
        """Return a client, without a request yet."""
        return Client(credentials)

    def close(self, session: Client) -> None:
        """Release what the client holds, such as connections."""
