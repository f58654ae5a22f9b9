"""Health checks of a manager that an author writes."""

from capsmith_runtime.health.api import HealthChecks

__all__ = ["HealthChecks"]
