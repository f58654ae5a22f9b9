"""Reading objects in tests."""

from __future__ import annotations

from capsmith_runtime.kube.client import JSON


def condition(obj: JSON, name: str) -> tuple[str, str]:
    """Return status and reason of a condition; empty if the object does not have it."""
    for entry in (obj.get("status") or {}).get("conditions", ()):
        if entry["type"] == name:
            return entry["status"], entry.get("reason", "")
    return "", ""
