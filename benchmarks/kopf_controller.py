"""The peer of the generated controller: the same work on Kopf, level-triggered by daemons.

One daemon an object looks at what is, waits for its owner Machine without polling, creates the
server, writes provider id and status, and looks again whenever the object or its Machine changes.
A daemon's patch is sent when the daemon pauses, so it pauses to have its writes sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import sys
from collections import defaultdict
from datetime import UTC, datetime
from types import ModuleType
from typing import Any

import kopf

GROUP, VERSION, PLURAL = os.environ["BENCHMARK_RESOURCE"].split("/")
CORE = ("cluster.x-k8s.io", "v1beta2", "machines")
SYNC_SECONDS = 600.0


def _cloud_module() -> ModuleType:
    # By its path: the package around it would bring the other controller's client along.
    spec = importlib.util.spec_from_file_location("cloud", os.environ["BENCHMARK_CLOUD"])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["cloud"] = module
    spec.loader.exec_module(module)
    return module


CLOUD = _cloud_module().SimulatedCloud()
CHANGED: dict[tuple[str | None, str | None], asyncio.Event] = defaultdict(asyncio.Event)
"""Set when something happens to the object of that namespace and name."""


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.posting.enabled = False
    settings.persistence.finalizer = f"machine.{GROUP}"
    settings.scanning.disabled = True


@kopf.index(*CORE)
def bootstrap(namespace: str, name: str, spec: kopf.Spec, **_: Any) -> Any:
    return {(namespace, name): spec.get("bootstrap", {}).get("dataSecretName")}


@kopf.on.event(*CORE)
def machine_changed(namespace: str, spec: kopf.Spec, **_: Any) -> None:
    CHANGED[namespace, spec.get("infrastructureRef", {}).get("name")].set()


@kopf.on.event(GROUP, VERSION, PLURAL)
def object_changed(namespace: str, name: str, **_: Any) -> None:
    CHANGED[namespace, name].set()


@kopf.daemon(GROUP, VERSION, PLURAL)
async def reconcile(
    namespace: str,
    name: str,
    uid: str,
    body: kopf.Body,
    patch: kopf.Patch,
    memo: kopf.Memo,
    stopped: kopf.DaemonStopped,
    bootstrap: kopf.Index[Any, Any],
    **_: Any,
) -> None:
    changed = CHANGED[namespace, name]
    while not stopped:
        changed.clear()
        owner = _owner(body)
        if owner is not None and any(bootstrap.get((namespace, owner), [])):
            provider_id = await asyncio.to_thread(_ensure_server, f"{name}.{uid}", name)
            wanted = _differences(body, provider_id, name)
            # What was written may not have come back yet: writing it again would be in vain.
            if wanted and wanted != memo.get("written"):
                memo["written"] = wanted
                _fill(patch, wanted)
                raise kopf.TemporaryError("the writes are sent now", delay=0)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(changed.wait(), SYNC_SECONDS)


def _ensure_server(external_id: str, name: str) -> str:
    server = CLOUD.find_server(external_id)
    if server is None:
        server = CLOUD.create_server(external_id, name, "benchmark", None)
    return str(server.provider_id)


@kopf.on.delete(GROUP, VERSION, PLURAL)
async def delete(namespace: str, name: str, uid: str, **_: Any) -> None:
    await asyncio.to_thread(CLOUD.delete_server, f"{name}.{uid}")
    CHANGED.pop((namespace, name), None)


def _owner(body: kopf.Body) -> str | None:
    for reference in body.metadata.get("ownerReferences", []):
        if reference["kind"] == "Machine":
            return str(reference["name"])
    return None


def _differences(body: kopf.Body, provider_id: str, name: str) -> dict[str, Any]:
    """What is to be written, by path."""
    wanted = {
        ("spec", "providerID"): provider_id,
        ("status", "initialization"): {"provisioned": True},
        ("status", "addresses"): [
            {"type": "Hostname", "address": name},
            {"type": "InternalIP", "address": "127.0.0.1"},
        ],
    }
    return {
        "/".join(path): value
        for path, value in wanted.items()
        if body.get(path[0], {}).get(path[1]) != value
    }


def _fill(patch: kopf.Patch, wanted: dict[str, Any]) -> None:
    for path, value in wanted.items():
        part, _, field = path.partition("/")
        patch.setdefault(part, {})[field] = value
    if "status" in patch:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        ready = {"type": "Ready", "status": "True", "reason": "Ready", "message": ""}
        patch["status"]["conditions"] = [{**ready, "lastTransitionTime": now}]
