"""What a simulated kubelet knows of the machine that it runs on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Server:
    """One simulated machine."""

    id: str
    name: str
    provider_id: str
    cluster: str
    user_data: str | None


class Servers(Protocol):
    """The machines that exist at the moment."""

    def servers(self, cluster: str | None = None) -> list[Server]:
        """Return the machines of one cluster, or of all."""
