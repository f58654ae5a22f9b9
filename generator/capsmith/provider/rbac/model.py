"""A permission and its reason, and the verbs that go together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from capsmith.provider.model import Resource

CORE = "cluster.x-k8s.io"
READ = ("get", "list", "watch")
CHANGE = ("get", "list", "patch", "update", "watch")
ALL = ("create", "delete", "get", "list", "patch", "update", "watch")
STATUS = ("get", "patch", "update")


@dataclass(frozen=True, slots=True)
class Permission:
    """One RBAC rule and why it is there."""

    groups: tuple[str, ...]
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    reason: str
    names: tuple[str, ...] = ()


def policy_rule(permission: Permission) -> dict[str, Any]:
    """The ``PolicyRule`` of a Role or ClusterRole."""
    rule: dict[str, Any] = {
        "apiGroups": list(permission.groups),
        "resources": list(permission.resources),
    }
    if permission.names:
        rule["resourceNames"] = list(permission.names)
    return {**rule, "verbs": list(permission.verbs)}


def groups(resources: Sequence[Resource]) -> tuple[str, ...]:
    """The API groups of some kinds, each once."""
    return tuple(sorted({str(resource.group) for resource in resources}))


def plurals(resources: Sequence[Resource], subresource: str = "") -> tuple[str, ...]:
    """What a rule calls some kinds; ``subresource`` with its slash."""
    return tuple(sorted(f"{resource.plural}{subresource}" for resource in resources))
