"""Managers watch Secrets without their data: keys, bootstrap data and credentials stay away."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

import pytest

from capsmith_runtime.addon.addons import AddonKind
from capsmith_runtime.addon.api import AddonReconciler
from capsmith_runtime.addon.controllers import AddonControllers
from capsmith_runtime.component import Component
from capsmith_runtime.kube.client import Page, ResourceType, Selection, WatchEvent
from capsmith_runtime.reconcile.kinds import SECRET
from capsmith_runtime.testing import clock
from capsmith_runtime.testing.fake_api import FakeApi
from capsmith_runtime.testing.machine_pool.environment import MachinePoolEnvironment
from capsmith_runtime.testing.manifests import Manifests
from tests.runtime.infrastructure import scripted_pools, scripted_provider
from tests.runtime.scenarios.providers import provider
from tests.runtime.support.woken import woken


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    pass


class Reconciler(AddonReconciler[Spec]):
    def reconcile_normal(self, addon: Any, cluster: Any, workload: Any) -> Any:
        raise NotImplementedError

    def reconcile_delete(self, addon: Any, cluster: Any, workload: Any) -> Any:
        raise NotImplementedError


ADDON = Component(
    label="addon-acme",
    namespace="acme-system",
    contract="v1beta2",
    groups=(
        AddonControllers(
            [
                AddonKind(
                    resource=ResourceType(
                        "addons.cluster.x-k8s.io", "v1alpha1", "Proxy", "proxies"
                    ),
                    finalizer="proxy.addons.cluster.x-k8s.io",
                    features=frozenset(),
                    spec=Spec,
                    reconciler=Reconciler,
                )
            ]
        ),
    ),
)


class RecordingApi(FakeApi):
    """Remembers how Secrets were listed and watched."""

    def __init__(self, manifests: Manifests = scripted_pools.PROVIDER.manifests) -> None:
        super().__init__("v1beta2", manifests)
        self.selections: list[Selection] = []

    async def list_page(
        self, resource: ResourceType, selection: Selection, *, limit: int = 0, token: str = ""
    ) -> Page:
        if resource == SECRET:
            self.selections.append(selection)
        return await super().list_page(resource, selection, limit=limit, token=token)

    async def watch(
        self, resource: ResourceType, selection: Selection, *, resource_version: str
    ) -> AsyncGenerator[WatchEvent, None]:
        if resource == SECRET:
            self.selections.append(selection)
        async for event in super().watch(resource, selection, resource_version=resource_version):
            yield event


@pytest.mark.parametrize(
    "component",
    [scripted_pools.COMPONENT, ADDON, scripted_provider.COMPONENT],
    ids=["pools", "addon", "identities"],
)
def test_secrets_are_watched_without_their_data(component: Component) -> None:
    async def scenario() -> None:
        api = RecordingApi()
        async with woken(component, api):
            assert {selection.metadata_only for selection in api.selections} == {True}

    clock.run(scenario())


@pytest.mark.parametrize(
    ("example", "watching"),
    [
        ("complete", {"control-plane"}),
        ("everything", {"infrastructure"}),
        ("extension", {"addon"}),
        ("managed", {"infrastructure"}),  # one component with all types
        ("pools", {"infrastructure"}),
    ],
)
def test_managers_of_examples_never_receive_data_of_secrets_that_they_watch(
    example: str, watching: set[str]
) -> None:
    """All types of providers, with identities of both scopes."""
    found: dict[str, set[bool]] = {}

    async def scenario() -> None:
        for type, component in provider(example).components.items():
            api = RecordingApi(provider(example).manifests_of(component))
            async with woken(component, api):
                found[type] = {selection.metadata_only for selection in api.selections}

    clock.run(scenario())
    assert {type: each for type, each in found.items() if each} == {
        type: {True} for type in watching
    }


def test_new_bootstrap_data_wake_their_pool() -> None:
    """Proves: MP-19."""

    async def scenario() -> None:
        env: MachinePoolEnvironment = scripted_pools.group_environment()
        env.core.add_cluster(env.cluster.name)
        env.add_pool(1)
        async with woken(env.component, env.api) as found:
            await found.forget()
            env.write_bootstrap("second")
            assert await found.keys(scripted_pools.GROUP_POOL.resource.kind) == [env.pool.name]

    clock.run(scenario())
