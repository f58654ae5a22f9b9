"""Resources of a provider without infrastructure, beside kinds of another role."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from capsmith_runtime.bootstrap.controllers import BootstrapControllers
from capsmith_runtime.component import Component
from capsmith_runtime.kube.client import JSON, NamespacedName, ResourceType
from capsmith_runtime.resource import (
    Deleted,
    ResourceDeleteScope,
    ResourceReconciler,
    ResourceScope,
    ResourceState,
)
from capsmith_runtime.resource.caches import ResourceKind
from capsmith_runtime.resource.controllers import StandaloneResourceControllers
from capsmith_runtime.testing import clock
from capsmith_runtime.testing.provider import ProviderUnderTest
from capsmith_runtime.testing.resource.environment import StandaloneResourceEnvironment
from tests.runtime.bootstrap.scripted_provider import COMPONENT, GROUP, REPOSITORY, KindleConfigSpec
from tests.runtime.infrastructure.scripted_provider import NoInfrastructure
from tests.runtime.support.woken import Woken, woken

CONFIG, MIRROR = "KindleConfig", "KindleMirror"
VERSION = f"{GROUP}/v1alpha1"
Scenario = Callable[[StandaloneResourceEnvironment, Woken], Awaitable[None]]


class MirrorReconciler(ResourceReconciler[KindleConfigSpec]):
    def reconcile_normal(self, resource: ResourceScope[KindleConfigSpec]) -> ResourceState:
        return ResourceState()

    def reconcile_delete(self, resource: ResourceDeleteScope[KindleConfigSpec]) -> Deleted:
        return Deleted()


KIND = ResourceKind(
    resource=ResourceType(GROUP, "v1alpha1", MIRROR, "kindlemirrors"),
    finalizer=f"kindlemirror.{GROUP}",
    features=frozenset(),
    spec=KindleConfigSpec,
    reconciler=MirrorReconciler,
)
(CONFIGS,) = COMPONENT.groups
assert isinstance(CONFIGS, BootstrapControllers)
BOTH = Component(
    label=COMPONENT.label,
    namespace=COMPONENT.namespace,
    contract=COMPONENT.contract,
    groups=(CONFIGS, StandaloneResourceControllers((KIND,))),
)


def run(scenario: Scenario) -> None:
    async def play() -> None:
        provider = ProviderUnderTest(
            components={"bootstrap": BOTH}, repository=REPOSITORY, config=("bootstrap/config",)
        )
        env = StandaloneResourceEnvironment(
            provider, BOTH, "v1beta1", infrastructure=NoInfrastructure(Path()), kind=KIND
        )
        async with woken(env.component, env.api) as found:
            await found.forget()
            await scenario(env, found)

    clock.run(play())


def add(env: StandaloneResourceEnvironment, kind: str, name: str, **metadata: object) -> JSON:
    return env.api.add(
        {
            "apiVersion": VERSION,
            "kind": kind,
            "metadata": {"namespace": "default", "name": name, **metadata},
            "spec": {} if kind == CONFIG else {"upstream": "https://example.com"},
        }
    )


def owned_by(owner: JSON) -> list[JSON]:
    names = {key: owner["metadata"][key] for key in ("name", "uid")}
    return [{"apiVersion": owner["apiVersion"], "kind": owner["kind"], **names}]


def test_a_change_wakes_an_owner_of_another_role() -> None:
    async def scenario(env: StandaloneResourceEnvironment, found: Woken) -> None:
        config = add(env, CONFIG, "config")
        add(env, MIRROR, "mirror", ownerReferences=owned_by(config))
        await found.forget()
        key = NamespacedName("default", "mirror")
        env.api.change(MIRROR, key, {"spec": {"upstream": "https://example.org"}})
        assert await found.keys(CONFIG) == ["config"]
        env.api.remove(MIRROR, key)
        assert await found.keys(CONFIG) == ["config"]

    run(scenario)


def test_the_cluster_of_an_owner_of_another_role_wakes_it() -> None:
    async def scenario(env: StandaloneResourceEnvironment, found: Woken) -> None:
        cluster = env.add_cluster()
        labels = {"cluster.x-k8s.io/cluster-name": cluster.name}
        config = add(env, CONFIG, "config", labels=labels)
        add(env, MIRROR, "mirror", ownerReferences=owned_by(config))
        add(env, MIRROR, "other")
        await found.forget()
        env.pause(cluster)
        assert await found.keys(MIRROR) == ["mirror"]

    run(scenario)
