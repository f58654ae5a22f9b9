"""Liveness and readiness checks, in addition to those that every manager has."""

from __future__ import annotations

from capsmith_runtime.health import HealthChecks


class ManagerHealthChecks(HealthChecks):
    """The checks of this provider; each manager creates one instance."""

    def livez(self) -> None:
        """Raise an exception only if a restart helps, for example when a thread has ended.

        Never call the infrastructure here: an outage would restart all managers.
        """

    def readyz(self) -> None:
        """Raise an exception while the manager cannot do its work; it is not restarted."""
