"""Audit logs of API servers: who requested what."""

from __future__ import annotations

import json
from pathlib import Path

from capsmith.clusters.processes.audit import (
    AuditedRequest,
    ResourceAttributes,
    collect_used,
    count_requests,
)

CORE = "system:serviceaccount:capi-system:capi-manager"
MACHINES = {"resource": "machines", "apiGroup": "example.com"}


def event(id: str, verb: str, user: str = CORE, allowed: bool = True, **target: str) -> str:
    decision = "allow" if allowed else "forbid"
    return json.dumps(
        {
            "auditID": id,
            "verb": verb,
            "user": {"username": user},
            "objectRef": {**MACHINES, **target},
            "annotations": {"authorization.k8s.io/decision": decision},
        }
    )


def log(folder: Path, *events: str) -> Path:
    file = folder / "audit.log"
    file.write_text("".join(f"{each}\n" for each in events))
    return file


def test_a_watch_is_one_request_at_its_beginning_and_its_end(tmp_path: Path) -> None:
    file = log(tmp_path, event("1", "watch"), event("2", "watch"), event("1", "watch"))

    watch = AuditedRequest(CORE, ResourceAttributes("example.com", "machines", "watch"), "", True)
    assert count_requests(file, [CORE]) == {watch: 2}


def test_requests_are_those_of_the_users_about_resources(tmp_path: Path) -> None:
    version = json.dumps({"auditID": "3", "verb": "get", "user": {"username": CORE}})
    about = event("4", "get", user="someone", name=CORE)
    patch = event("5", "patch", subresource="status", name="a", allowed=False)
    file = log(tmp_path, version, about, patch)

    status = ResourceAttributes("example.com", "machines/status", "patch")
    assert count_requests(file, [CORE]) == {AuditedRequest(CORE, status, "a", False): 1}
    assert collect_used(file, CORE) == set()
    assert collect_used(file, "someone") == {ResourceAttributes("example.com", "machines", "get")}
