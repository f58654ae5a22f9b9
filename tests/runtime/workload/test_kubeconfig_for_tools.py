"""The kubeconfig that authors hand to other tools."""

from __future__ import annotations

import base64
from typing import cast

import pytest

from capsmith_runtime.kube.client import JSON, KubeClient, NamespacedName, ResourceType
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.reconcile.results import NotAvailableError
from capsmith_runtime.workload.client import WorkloadClients
from capsmith_runtime.workload.kubeconfig import Access, parse, render

ACCESS = Access(server="https://10.0.0.1:6443", token="t")
RUNS_A_PROGRAM = render("demo", ACCESS).replace(
    b"token: t", b"exec: {apiVersion: client.authentication.k8s.io/v1, command: sh}"
)


class Management:
    """A management cluster with one kubeconfig."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    async def get(self, resource: ResourceType, key: NamespacedName) -> JSON:
        return {"data": {"value": base64.b64encode(self.content).decode()}}


def clients(content: bytes) -> WorkloadClients:
    return WorkloadClients(cast(KubeClient, Management(content)), Metrics(), field_manager="test")


async def test_it_has_the_checked_access_and_nothing_else() -> None:
    found = await clients(render("other", ACCESS) + b"extensions: []\n").kubeconfig("d", "demo")
    assert found == render("demo", ACCESS)
    assert parse(found) == ACCESS


async def test_one_that_runs_a_program_is_refused() -> None:
    """A tool would run it in the manager's container."""
    assert b"exec" in RUNS_A_PROGRAM
    with pytest.raises(NotAvailableError, match="exec"):
        await clients(RUNS_A_PROGRAM).kubeconfig("d", "demo")
