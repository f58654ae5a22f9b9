"""Base class for the author's health checks."""

from __future__ import annotations

from collections.abc import Awaitable


class HealthChecks:
    """A manager's additional health checks; methods may be ``def`` or ``async def``.

    Each manager creates one instance, without arguments. Each method is called every 10 seconds,
    with a timeout of 5 seconds, on the leader and on all other replicas.
    """

    def livez(self) -> Awaitable[None] | None:
        """Raise an exception while the manager has a fault that a restart repairs; optional.

        Such a fault is inside the process: a thread that has ended, a connection that cannot be
        opened again. Never call the infrastructure here: all managers would restart during its
        outage. After three consecutive failures ``/healthz`` fails, and Kubernetes restarts the
        manager. A check that has not succeeded since the manager started has no effect, because the
        last restart did not repair its fault.
        """
        return None

    def readyz(self) -> Awaitable[None] | None:
        """Raise an exception while the manager cannot do its work; optional.

        While it fails, ``/readyz`` fails with the name of the class. The manager continues to
        reconcile and is not restarted. To check the infrastructure, use ``readyz`` of a session
        factory.
        """
        return None
