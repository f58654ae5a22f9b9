"""Status for simulated Nodes."""

from __future__ import annotations

import time

from capsmith.clusters.processes.kube import JSON

_PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure")


def build_healthy_conditions() -> list[JSON]:
    """Return the four conditions that a Node needs for core to consider it healthy."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    statuses = {"Ready": "True", **dict.fromkeys(_PRESSURES, "False")}
    return [
        {
            "type": name,
            "status": status,
            "reason": "Simulated",
            "message": "",
            "lastHeartbeatTime": now,
        }
        for name, status in statuses.items()
    ]
