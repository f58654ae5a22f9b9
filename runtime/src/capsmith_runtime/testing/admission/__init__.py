"""Builders for unit tests of validators and defaulters; they need no API server."""

from __future__ import annotations

import asyncio
import base64
import copy
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from capsmith_runtime.admission.api import AdmissionObject
from capsmith_runtime.admission.controllers import AdmissionHandler
from capsmith_runtime.admission.kinds import AdmittedKind
from capsmith_runtime.admission.reads import ObjectReads
from capsmith_runtime.contract.v1beta2 import CoreV1Beta2
from capsmith_runtime.kube.client import JSON
from capsmith_runtime.kube.http_server import Request
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.reconcile.caches import Caches, WatchScope
from capsmith_runtime.reconcile.permissions import Permissions
from capsmith_runtime.testing.core import NAMESPACE, core_cluster, spec_from
from capsmith_runtime.testing.fake_api import FakeApi
from capsmith_runtime.testing.manifests import Manifests

__all__ = [
    "admission_object",
    "core_cluster",
    "spec_from",
]


Spec = TypeVar("Spec")


def admission_object(spec: Spec, name: str = "object", **changes: Any) -> AdmissionObject[Spec]:
    """Create an object with a typed spec; ``changes`` replace its other fields.

    ``changes`` may also set ``cluster``, the object's Cluster, which is None by default, and
    ``client``, which by default raises an error for each read.
    """
    if "cluster" in changes:
        changes["_cluster"] = changes.pop("cluster")
    fields: dict[str, Any] = {
        "name": name,
        "namespace": NAMESPACE,
        "labels": {},
        "annotations": {},
        "spec": spec,
    }
    return AdmissionObject(**fields | changes)


@dataclass(frozen=True)
class AdmissionResponse:
    """What a validator or defaulter decided about an object in a unit test."""

    object: JSON
    """The object with the webhook's defaults."""
    refusal: str
    """Reason why the object was rejected, or an empty string if it was accepted."""


def create(
    kind: AdmittedKind,
    obj: JSON,
    existing: Sequence[JSON] = (),
    permissions: Permissions | None = None,
) -> AdmissionResponse:
    """Return the webhooks' decision about a new object, after defaults have been applied to it.

    The API server has the ``existing`` objects; validators read them within ``permissions``.
    """
    response = AdmissionResponse(obj, "")
    if kind.defaulter is not None:
        response = default(kind, obj)
    if kind.validator is not None and not response.refusal:
        found = permissions or Permissions()
        response = _send(kind, kind.validate_path, response.object, existing, found)
    return response


def default(kind: AdmittedKind, obj: JSON) -> AdmissionResponse:
    """Return the mutating webhook's response for a new object, using a new defaulter."""
    return _send(kind, kind.mutate_path, obj, (), Permissions())


def _send(
    kind: AdmittedKind, path: str, obj: JSON, existing: Sequence[JSON], permissions: Permissions
) -> AdmissionResponse:
    group, _, version = obj["apiVersion"].rpartition("/")
    request = {
        "uid": "1",
        "operation": "CREATE",
        "kind": {"group": group, "version": version, "kind": obj["kind"]},
        "object": obj,
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}

    async def main() -> bytes:
        api = FakeApi("v1beta2", Manifests(()))
        for each in existing:
            api.add(each)
        caches = Caches(api, Metrics(), CoreV1Beta2(), WatchScope())
        handler = AdmissionHandler(kind, ObjectReads(caches, permissions), Metrics(), threads=1)
        body = json.dumps(review).encode()
        return (await handler.routes[path](Request("POST", path, body))).body

    response = json.loads(asyncio.run(main()))["response"]
    operations = json.loads(base64.b64decode(response.get("patch", "W10=")))
    refusal = response["status"]["message"] if not response["allowed"] else ""
    return AdmissionResponse(_patched(obj, operations), refusal)


def _patched(obj: JSON, operations: list[dict[str, Any]]) -> JSON:
    result = copy.deepcopy(obj)
    for operation in operations:
        _, *steps = operation["path"].split("/")
        *parents, last = [step.replace("~1", "/").replace("~0", "~") for step in steps]
        holder = result
        for step in parents:
            holder = holder[step]
        if operation["op"] == "remove":
            del holder[last]
        else:
            holder[last] = operation["value"]
    return result
