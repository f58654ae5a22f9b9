"""Health checks that the author of a provider writes for its managers."""

from capsmith_runtime.health.api import HealthChecks

__all__ = ["HealthChecks"]
