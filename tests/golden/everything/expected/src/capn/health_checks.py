"""Liveness and readiness of the manager, in addition to the checks that each manager has."""

from __future__ import annotations

from capsmith_runtime.health import HealthChecks


class ManagerHealthChecks(HealthChecks):
    """The checks of this provider; each manager creates one instance."""

    def livez(self) -> None:
        """Raise an exception only for what a restart mends, such as a thread that has ended.

        Never call the infrastructure here: its outage would restart all managers.
        """

    def readyz(self) -> None:
        """Raise an exception while the manager cannot do its work; it is not restarted."""
