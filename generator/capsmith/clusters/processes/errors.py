"""Errors of a management cluster's parts; each carries a finding for the user."""

from __future__ import annotations

from capsmith.errors import CapsmithError

_HINT = "See the end of its log above, and the whole log in the folder of the run."


class ToolsUnavailable(CapsmithError):
    """A tool is neither in the cache nor on PATH, and cannot be built."""

    def __init__(self, message: str, hint: str = "Install it, or add it to PATH.") -> None:
        super().__init__("tools-unavailable", message, hint=hint)


class ClusterctlError(CapsmithError):
    """clusterctl ended with an error; the message carries its output."""

    def __init__(self, message: str) -> None:
        super().__init__("clusterctl-failed", message, hint="Correct what clusterctl reports.")


class ProcessError(CapsmithError):
    """A process ended, or never became ready; the message carries the end of its log."""

    def __init__(self, message: str) -> None:
        super().__init__("process-failed", message, hint=_HINT)


class RequestError(CapsmithError):
    """A request to a management cluster failed that a run depends on."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__("request-failed", message, hint=hint)


class UnsupportedDeployment(CapsmithError):
    """A Deployment cannot be started as a process."""

    def __init__(self, message: str) -> None:
        hint = "Run the provider in a cluster, and specify its kubeconfig."
        super().__init__("deployment-unsupported", message, hint=hint)
