"""Objects of one user that the API server stores, and the lists of all others."""

from __future__ import annotations

import json
import uuid

import pytest

from capsmith.clusters.processes.kube import JSON, KubeClient
from tests.realapi.test_conversion import DATA, NEW, OLD, created, repository, served

__all__ = ["repository", "served"]
KIND = "HarbourCluster"
DEEP = '{"f:spec":' + '{"f:a":' * 5_000 + "{}" + "}" * 5_001
FILLED = "x" * (256 * 1024 - 1)
STALE = f'{{"apiVersion":"{OLD}","status":{{"failureMessage":"\\ud800"}}}}'


def managed_fields(value: str) -> str:
    entry = f'"manager":"m","operation":"Update","apiVersion":"{NEW}","fieldsType":"FieldsV1"'
    return f'"managedFields":[{{{entry},"time":"2025-05-01T10:00:00Z","fieldsV1":{value}}}]'


@pytest.fixture
def others(api: KubeClient, served: list[JSON]) -> str:
    """Return the name of an object of another user."""
    return created(api, NEW, KIND, {"region": "north"})


@pytest.mark.parametrize(
    "metadata",
    [
        managed_fields(DEEP),
        f'"annotations":{json.dumps({"a": FILLED})}',
        f'"annotations":{json.dumps({DATA: STALE})}',
        f'"annotations":{json.dumps({DATA: DEEP})}',
    ],
    ids=["managed fields", "annotations", "surrogate", "deep data"],
)
def test_one_object_fails_no_list(api: KubeClient, others: str, metadata: str) -> None:
    """Proves: CRD-15."""
    name = f"hostile-{uuid.uuid4().hex[:8]}"
    head = f'"apiVersion":"{NEW}","kind":"{KIND}","spec":{{"region":"north"}}'
    body = f'{{{head},"metadata":{{"name":"{name}","namespace":"default",{metadata}}}}}'
    path = api.path(NEW, KIND, namespace="default")
    headers = {**api._headers(), "Content-Type": "application/json"}
    status, text, _ = api._send("POST", path, body.encode(), headers)
    assert status == 201, text[:300]
    try:
        # What the old version cannot express, the annotation keeps.
        conditions = [
            {
                **{"type": "Ready", "status": "False", "reason": "R", "message": ""},
                **{"lastTransitionTime": "2025-05-01T10:00:00Z", "observedGeneration": 2},
            }
        ]
        change = json.dumps({"status": {"conditions": conditions}}).encode()
        headers["Content-Type"] = "application/merge-patch+json"
        status, text, _ = api._send("PATCH", f"{path}/{name}/status", change, headers)
        assert status == 200, text[:300]

        status, text, _ = api._send(
            "GET", api.path(OLD, KIND, namespace="default"), None, api._headers()
        )

        assert status == 200, text[:300]
        assert f'"name":"{others}"' in text
        assert f'"name":"{name}"' in text
    finally:
        api._send("DELETE", f"{path}/{name}", None, api._headers())
