"""The results of one reconcile of a control plane, for the status."""

from __future__ import annotations

from dataclasses import dataclass, field

from capsmith_runtime.controlplane.api import ControlPlaneHealth
from capsmith_runtime.controlplane.hook_caller import HookCallError
from capsmith_runtime.controlplane.scale_input import Decision
from capsmith_runtime.reconcile.results import Waiting


@dataclass(slots=True, kw_only=True)
class ReconcileSummary:
    """Filled in during a reconcile; the status is written from it in the end."""

    initialized: bool
    outdated: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Why Machines are outdated, by name; Machines that were not compared are missing."""
    added: set[str] = field(default_factory=set)
    """Names of the Machines whose ``after_add`` hook has completed."""
    health: ControlPlaneHealth = field(default_factory=ControlPlaneHealth)
    decision: Decision = field(default_factory=Decision)
    waits: list[Waiting] = field(default_factory=list)
    """What blocks the control plane."""
    certificates: Waiting | None = None
    """Why there are no usable certificates."""
    certificates_message: str = ""
    """Message about usable certificates."""
    error: HookCallError | None = None
    requeue: list[float] = field(default_factory=list)
    """Seconds until the next reconcile; the smallest counts."""

    def keep_results_of_hooks(self, earlier: ReconcileSummary) -> None:
        """Take over what an earlier reconcile reported, as this one may not call the hooks yet."""
        self.health = earlier.health
        self.decision = earlier.decision
        self.waits = earlier.waits
        self.error = earlier.error

    def wait(self, waiting: Waiting) -> None:
        """Record a wait, and request another reconcile after it."""
        self.waits.append(waiting)
        self.requeue_after(waiting.requeue_after)

    def requeue_after(self, seconds: float | None) -> None:
        """Request another reconcile; None requests none."""
        if seconds is not None:
            self.requeue.append(seconds)
