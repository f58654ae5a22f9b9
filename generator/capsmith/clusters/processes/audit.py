"""Determine, from an API server's audit log, which permissions a ServiceAccount has used."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from capsmith.clusters.processes.kube import JSON, KubeClient

_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "userGroups": ["system:serviceaccounts"]},
        {"level": "None"},
    ],
}
_RBAC = "rbac.authorization.k8s.io/v1"


class ResourceAttributes(NamedTuple):
    """A verb on a resource. `resource` includes the subresource, or is `*` for all resources."""

    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{'.' if self.group else ''}{self.group}"


def audit_flags(folder: Path, log: Path) -> list[str]:
    """Return flags that make kube-apiserver log every request from a ServiceAccount.

    Writes the audit policy to ``folder``.
    """
    policy = folder / "audit-policy.json"
    policy.write_text(json.dumps(_POLICY), encoding="utf-8")
    return [f"--audit-policy-file={policy}", f"--audit-log-path={log}"]


class AuditedRequest(NamedTuple):
    """A request that is in an API server's audit log, without its body."""

    user: str
    access: ResourceAttributes
    name: str
    """Name of the object; empty if the request concerns several objects."""
    is_allowed: bool


def count_requests(log: Path, users: Collection[str]) -> Counter[AuditedRequest]:
    """Count the given users' requests in an audit log."""
    # A watch is logged when it begins and when it ends.
    found = {event["auditID"]: _request(event) for event in _events(log, users)}
    return Counter(found.values())


def collect_used(log: Path, user: str) -> set[ResourceAttributes]:
    """Return the permissions that a user needed for its allowed requests."""
    return {each.access for each in count_requests(log, [user]) if each.is_allowed}


def collect_granted(client: KubeClient, user: str) -> set[ResourceAttributes]:
    """Return the permissions that a ServiceAccount gets from role bindings.

    Aggregated roles are left out, because other providers contribute to their rules.
    """
    namespace, _, name = user.removeprefix("system:serviceaccount:").partition(":")
    return {
        ResourceAttributes(group, resource, verb)
        for rule in _rules(client, namespace, name)
        for group in rule.get("apiGroups", ())
        for resource in rule.get("resources", ())
        for verb in rule["verbs"]
    }


def find_unused(
    allowed: set[ResourceAttributes], requested: set[ResourceAttributes]
) -> set[ResourceAttributes]:
    """Return the permissions in ``allowed`` that no request in ``requested`` needed."""
    return {
        each
        for each in allowed
        if each not in requested
        and not (each.resource == "*" and (each.group, each.verb) in _by_group(requested))
    }


def _by_group(accesses: set[ResourceAttributes]) -> set[tuple[str, str]]:
    return {(each.group, each.verb) for each in accesses}


def _events(log: Path, users: Collection[str]) -> Iterator[dict[str, Any]]:
    """Yield the log's events about resources that the given users caused."""
    texts = [json.dumps(user) for user in users]
    with log.open(encoding="utf-8") as lines:
        for line in lines:
            # Most lines are about other users, and parsing is slow.
            event = json.loads(line) if any(text in line for text in texts) else {}
            if event and event["user"]["username"] in users and "resource" in _target(event):
                yield event


def _target(event: dict[str, Any]) -> dict[str, str]:
    target: dict[str, str] = event.get("objectRef", {})
    return target


def _request(event: dict[str, Any]) -> AuditedRequest:
    target = _target(event)
    parts = (target["resource"], target.get("subresource", ""))
    resource = "/".join(part for part in parts if part)
    access = ResourceAttributes(target.get("apiGroup", ""), resource, event["verb"])
    decision = event.get("annotations", {}).get("authorization.k8s.io/decision")
    return AuditedRequest(
        event["user"]["username"], access, target.get("name", ""), decision == "allow"
    )


def _rules(client: KubeClient, namespace: str, name: str) -> Iterator[JSON]:
    bindings = client.list(_RBAC, "ClusterRoleBinding")
    bindings += client.list(_RBAC, "RoleBinding", namespace)
    subject = ("ServiceAccount", name, namespace)
    for binding in bindings:
        subjects = binding.get("subjects") or []
        if subject in [(each["kind"], each["name"], each.get("namespace")) for each in subjects]:
            role = binding["roleRef"]
            where = namespace if role["kind"] == "Role" else ""
            found = client.get(_RBAC, role["kind"], role["name"], where)
            if "aggregationRule" not in found:
                yield from found.get("rules") or []
