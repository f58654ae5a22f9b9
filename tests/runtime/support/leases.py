"""Candidates for a Lease, with timings that suit the tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.kube.leaderelection import LeaderElector, LeaseTimings
from capsmith_runtime.kube.metrics import Metrics

from .following import connected
from .server import Api

LEASES = "coordination.k8s.io/v1"
# The holder gives up soon if it cannot renew, long before another process can acquire it.
FLEETING = LeaseTimings(duration=300.0, renew_deadline=1.2, retry=0.2)
# Acquired soon by another process if it is not renewed.
SHORT = LeaseTimings(duration=5.0, renew_deadline=4.0, retry=0.2)
# Long enough not to be lost on a busy machine.
PATIENT = LeaseTimings(duration=20.0, renew_deadline=16.0, retry=0.2)
# As that; a release has as long as it waits between two tries.
UNHURRIED = LeaseTimings(duration=120.0, renew_deadline=100.0, retry=3.0)
# For terms that are to end and to be followed often.
BRIEF = LeaseTimings(duration=2.0, renew_deadline=1.2, retry=0.2)
ENOUGH = 180.0
"""Seconds after which an event is not expected to happen."""


@asynccontextmanager
async def candidate(
    kubeconfig: Path,
    namespace: str,
    identity: str,
    metrics: Metrics | None = None,
    timings: LeaseTimings = PATIENT,
) -> AsyncIterator[LeaderElector]:
    metrics = metrics or Metrics()
    async with connected(kubeconfig, metrics) as client:
        key = NamespacedName(namespace, "lease")
        yield LeaderElector(client, key, identity, metrics, timings=timings)


def lease(api: Api, namespace: str) -> JSON:
    return api.client.get(LEASES, "Lease", "lease", namespace)


def lease_version(api: Api, namespace: str) -> int:
    return int(lease(api, namespace)["metadata"]["resourceVersion"])


def holder(api: Api, namespace: str) -> str:
    return str(lease(api, namespace)["spec"].get("holderIdentity"))
