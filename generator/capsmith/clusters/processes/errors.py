"""Errors from the parts of a management cluster. Each contains a finding for the user."""

from __future__ import annotations

from capsmith.errors import CapsmithError

_HINT = "See the end of its log above, and the whole log in the folder of the run."


class ToolsUnavailable(CapsmithError):
    """Raised if a tool is neither cached nor on PATH, and cannot be built."""

    def __init__(self, message: str, hint: str = "Install it, or add it to PATH.") -> None:
        super().__init__("tools-unavailable", message, hint=hint)


class ClusterctlError(CapsmithError):
    """Raised if clusterctl fails; the message contains its output."""

    def __init__(self, message: str) -> None:
        hint = "Correct what clusterctl reports."
        if "value for variables [" in message:
            hint = "Set the variables in the environment, and run the command again."
        super().__init__("clusterctl-failed", message, hint=hint)


class ProcessError(CapsmithError):
    """Raised if a process exits or never becomes ready; the message contains its last output."""

    def __init__(self, message: str) -> None:
        super().__init__("process-failed", message, hint=_HINT)


class ManagerEnded(ProcessError):
    """Raised if a manager ends during a run, which cannot go on without it."""


class RequestError(CapsmithError):
    """Raised if a request fails that the run cannot continue without."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__("request-failed", message, hint=hint)


class UnsupportedDeployment(CapsmithError):
    """Raised if a Deployment cannot be run as a process."""

    def __init__(self, message: str) -> None:
        hint = "Run the provider in a cluster, and specify its kubeconfig."
        super().__init__("deployment-unsupported", message, hint=hint)
