"""Sessions that the reconcilers of several kinds share, such as clients of an SDK."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable
from typing import Any, ClassVar, Generic, TypeVar, cast

from capsmith_runtime.reconcile.credentials import Credentials

S = TypeVar("S")


class SessionFactory(ABC, Generic[S]):
    """Opens and closes the session of each identity; methods may be ``def`` or ``async def``.

    The manager creates one factory, without arguments, for all reconcilers that name the class in
    ``session_factory``.  A session is opened once for an identity, before the first call that
    needs it.  Several calls use it at the same time, ``def`` methods in different threads: if your
    SDK is not thread-safe, put what each thread needs into the session.
    """

    idle_timeout: ClassVar[float] = 1800.0
    """Seconds without a call after which a session is closed."""
    rate: ClassVar[float] = 0.0
    """Calls of your methods per second for one identity; 0 is unlimited.  See ``--hook-rate``."""
    burst: ClassVar[int] = 0
    """Calls that may start at once after a quiet time; by default those of one second."""

    @abstractmethod
    def open(self, credentials: Credentials) -> S | Awaitable[S]:
        """Return a new session.

        Called again with the new credentials when the Secret of the identity has changed, and
        with empty credentials for clusters without identity.  An exception is reported in the
        Ready condition of all objects that need the session, and the call is retried with
        back-off.
        """

    def close(self, session: S) -> Awaitable[None] | None:
        """Release a session that no call uses any longer; by default do nothing."""
        return None

    def readyz(self) -> Awaitable[None] | None:
        """Raise an exception while the infrastructure cannot be used at all; optional.

        Called every 10 seconds, with 5 seconds time.  Until it succeeds, the manager is not ready:
        ``/readyz`` fails with the name of this class, and webhooks of this pod get no requests.
        The manager goes on reconciling and is not restarted.
        """
        return None


class SessionUser:
    """Base class of reconcilers whose methods may need a session."""

    session_factory: ClassVar[type[SessionFactory[Any]] | None] = None
    """The factory of the session in ``scope.session(...)``; None for no session."""


class ScopeSession:
    """The session of one call, or the reason why there is none."""

    __slots__ = ("_error", "_factory", "_session")

    def __init__(self, session: object = None) -> None:
        """With a session, as in unit tests, it is returned for any factory."""
        self._factory: type[SessionFactory[Any]] | None = None
        self._session = session
        self._error: Exception | None = None

    def provide(self, factory: type[SessionFactory[Any]], session: object) -> None:
        """Return this session from now on."""
        self._factory, self._session = factory, session

    def fail(self, factory: type[SessionFactory[Any]], error: Exception) -> None:
        """Raise this error from now on."""
        self._factory, self._error = factory, error

    def get(self, factory: type[SessionFactory[S]]) -> S:
        """Return the session; raise TypeError if the reconciler does not name this factory."""
        is_of_test = self._factory is None and self._session is not None
        if not is_of_test and (self._factory is None or not issubclass(self._factory, factory)):
            found = "None" if self._factory is None else self._factory.__name__
            raise TypeError(
                f"session_factory of the reconciler is {found}: set it to {factory.__name__}"
            )
        if self._error is not None:
            raise self._error
        return cast(S, self._session)
