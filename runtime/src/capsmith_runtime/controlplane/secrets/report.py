"""State of the Secrets of a cluster: problems, notes, and the time of the next renewal."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from capsmith_runtime.contract import times
from capsmith_runtime.contract.constants import CLUSTER_NAME_LABEL
from capsmith_runtime.reconcile.results import Waiting

REASON_NOT_USABLE: Final = "CertificatesNotUsable"
EXPIRY_NOTICE: Final = timedelta(days=90)
"""How long before its expiry a certificate that is not renewed automatically is reported."""


@dataclass(slots=True, kw_only=True)
class SecretReport:
    """Filled in while the Secrets are checked; the same Secrets give the same texts."""

    now: datetime
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    renewal: datetime | None = None
    """When the kubeconfig has to be renewed."""

    @property
    def waiting(self) -> Waiting | None:
        """The repair to wait for; None if all Secrets are usable."""
        message = "; ".join(self.faults)
        return Waiting(REASON_NOT_USABLE, message, None) if message else None

    @property
    def message(self) -> str:
        """Notes on usable Secrets."""
        return "; ".join(self.notes)

    def seconds_to_renewal(self, within: float) -> float | None:
        """Return the seconds until the renewal; None if the next sync comes before it."""
        if self.renewal is None:
            return None
        seconds = max(0.0, (self.renewal - self.now).total_seconds())
        return seconds if within <= 0 or seconds < within else None

    def add_missing(self, name: str) -> None:
        """Report a Secret that was deleted, although its keys are in use."""
        self.faults.append(f"Secret {name} is missing and must be restored")

    def add_unusable(self, name: str, why: str) -> None:
        """Report a Secret with unusable content."""
        self.faults.append(f"Secret {name} cannot be used: {why}")

    def add_unlabelled(self, name: str, cluster: str) -> None:
        """Report a Secret that core and bootstrap providers do not see (SEC-01, SEC-03)."""
        self.add_unusable(name, f"it has no label {CLUSTER_NAME_LABEL}={cluster}")

    def check_expiry(self, name: str, end: datetime) -> bool:
        """Report a certificate that has expired or will soon; return whether it is valid."""
        if end <= self.now:
            message = f"its certificate has expired at {times.format_time(end)}"
            self.add_unusable(name, message)
        elif end <= self.now + EXPIRY_NOTICE:
            end_time = times.format_time(end)
            self.notes.append(f"The certificate in Secret {name} ends at {end_time}")
        return end > self.now
