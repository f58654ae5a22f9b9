"""The client of the workload cluster in reconcilers of infrastructure."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from capsmith_runtime.infrastructure import Deleted, NotAvailableError
from capsmith_runtime.infrastructure.controllers import InfrastructureControllers
from capsmith_runtime.kube.client import KubeClient, NamespacedName
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.fake_api import FakeApi
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from capsmith_runtime.testing.kubernetes import fake_workload_client
from capsmith_runtime.testing.manifests import Manifests
from tests.runtime.infrastructure import scripted_provider
from tests.runtime.infrastructure.scripted_provider import (
    PROVISIONED,
    ScriptedMachines,
    ScriptFactory,
    add_machine,
    ready_condition,
)


class _Clusters:
    """Workload clusters by name; each has one Node."""

    def __init__(self, management: KubeClient, metrics: Metrics, *, field_manager: str) -> None:
        assert field_manager == "infrastructure-acme"

    async def get(self, namespace: str, cluster: str) -> KubeClient:
        key = NamespacedName(namespace, cluster)
        if key not in apis:
            apis[key] = FakeApi("v1beta2", Manifests(()))
            apis[key].add(NODE)
        return apis[key]

    async def run(self) -> None:
        await asyncio.Event().wait()


NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "m1"}, "spec": {}}
apis: dict[NamespacedName, FakeApi] = {}
(_GROUP,) = scripted_provider.COMPONENT.groups
assert isinstance(_GROUP, InfrastructureControllers)
_MACHINES = tuple(
    replace(kind, features=kind.features | {"workloadClient"}) for kind in _GROUP.machines
)
PROVIDER = replace(
    scripted_provider.PROVIDER,
    components={
        "infrastructure": replace(
            scripted_provider.COMPONENT,
            groups=(replace(_GROUP, machines=_MACHINES, workload=_Clusters),),
        )
    },
)


def _set_provider_id(machine: Any) -> Any:
    body = {"spec": {"providerID": "acme://1"}}
    machine.workload_client.patch("v1", "Node", "m1", body)
    return PROVISIONED


class TestWorkloadClient(ScriptedMachines):
    """A client that waits for the control plane."""

    @scenario
    async def test_nodes_are_changed_once_the_control_plane_is_initialized(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        normal(_set_provider_id)
        key = await add_machine(env)
        reason = "WaitingForControlPlaneInitialized"
        await env.eventually("waits", lambda: ready_condition(env, key) == ("False", reason))
        (cluster,) = env.api.all("Cluster")
        on = NamespacedName(key.namespace, cluster["metadata"]["name"])
        initialized = {"status": {"initialization": {"controlPlaneInitialized": True}}}
        env.api.change("Cluster", on, initialized)
        await env.eventually("provisioned", lambda: env.has_machine(key))
        node = apis[on].find("Node", NamespacedName("", "m1"))
        assert node is not None
        assert node["spec"] == {"providerID": "acme://1"}

    @scenario
    async def test_a_deletion_can_do_without(
        self, env: InfrastructureEnvironment, normal: ScriptFactory, delete: ScriptFactory
    ) -> None:
        errors = []

        def forget(machine: Any) -> Deleted:
            try:
                machine.workload_client.delete("v1", "Node", machine.name)
            except NotAvailableError as error:
                errors.append(error)
            return Deleted()

        delete(forget)
        key = await add_machine(env)
        await env.eventually("provisioned", lambda: env.has_machine(key))
        env.api.remove("AcmeMachine", key)
        await env.eventually("gone", lambda: env.api.find("AcmeMachine", key) is None)
        assert len(errors) == 1


def test_unit_tests_have_a_client() -> None:
    client = fake_workload_client(NODE)
    client.patch("v1", "Node", "m1", {"spec": {"providerID": "acme://1"}})
    found = client.get("v1", "Node", "m1")
    assert found is not None
    assert found["spec"]["providerID"] == "acme://1"
