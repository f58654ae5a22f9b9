"""Deleted objects that a finalizer of another controller keeps."""

from __future__ import annotations

from capsmith_runtime.contract import conditions
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.testing.environment import TestEnvironment

OTHER_FINALIZER = "backup.example.com/keep"


async def delete_but_keep(env: TestEnvironment, kind: str, key: NamespacedName) -> JSON:
    """Delete an object that another finalizer keeps; return it once nothing changes."""
    obj = env.api.find(kind, key)
    assert obj is not None
    finalizers = [*obj["metadata"]["finalizers"], OTHER_FINALIZER]
    env.api.change(kind, key, {"metadata": {"finalizers": finalizers}})
    env.api.remove(kind, key)

    def left() -> list[str]:
        return (env.api.find(kind, key) or {}).get("metadata", {}).get("finalizers") or []

    await env.eventually("only the other finalizer is left", lambda: left() == [OTHER_FINALIZER])
    await env.quiet()
    kept = env.api.find(kind, key)
    assert kept is not None, "it is gone"
    return kept


def check_condition(obj: JSON, condition_type: str, status: str) -> None:
    """Fail unless a condition has a status, the reason Deleting, and names the other finalizer."""
    shown = conditions.find(obj["status"]["conditions"], condition_type)
    assert shown is not None
    assert (shown["status"], shown["reason"]) == (status, "Deleting")
    assert OTHER_FINALIZER in shown["message"]
