"""The capacity of machine templates, which reconcilers may have to look up in the cloud."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest

from capsmith_runtime.infrastructure import (
    Credentials,
    InfraMachineTemplateScope,
    MachineCapacity,
    RateLimitedError,
    ReconcileError,
    SessionFactory,
    Waiting,
)
from capsmith_runtime.infrastructure.controllers import InfrastructureControllers
from capsmith_runtime.infrastructure.machine_template import MachineTemplateController
from capsmith_runtime.kube.client import JSON, NamespacedName, ResourceType
from capsmith_runtime.testing import infrastructure as testing
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from capsmith_runtime.testing.infrastructure.fake_core import NAMESPACE
from capsmith_runtime.testing.provider import ProviderUnderTest
from tests.golden.expected import expected_folder
from tests.runtime.infrastructure.scripted_provider import (
    COMPONENT,
    NoInfrastructure,
    ScriptedClusterReconciler,
    ScriptedMachineReconciler,
    ScriptedMachines,
)

GROUP = "infrastructure.nimbus.example.com"
TEMPLATE = NamespacedName(NAMESPACE, "t1")
CAPACITY = MachineCapacity(resources={"cpu": "8"}, architecture="arm64")


@dataclass(frozen=True, slots=True, kw_only=True)
class NimbusClusterSpec:
    """The fields that the tests read."""

    region: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NimbusMachineSpec:
    """The fields that the tests read."""

    flavor: str


class CapacityReconciler(ScriptedMachineReconciler):
    """Reports the capacity that a test wants."""

    answer: ClassVar[Any]

    def capacity(self, template: InfraMachineTemplateScope[Any]) -> Any:
        return type(self).answer(template)


def _resource(kind: str, plural: str, *, namespaced: bool = True) -> ResourceType:
    return ResourceType(GROUP, "v1beta1", kind, plural, namespaced=namespaced)


def _provider() -> ProviderUnderTest:
    (old,) = COMPONENT.groups
    assert isinstance(old, InfrastructureControllers)
    cluster, machine, identity = old.clusters[0], old.machines[0], old.identities[0]
    controllers = replace(
        old,
        template=MachineTemplateController,
        clusters=(
            replace(
                cluster,
                resource=_resource("NimbusCluster", "nimbusclusters"),
                spec=NimbusClusterSpec,
                reconciler=ScriptedClusterReconciler,
            ),
        ),
        machines=(
            replace(
                machine,
                resource=_resource("NimbusMachine", "nimbusmachines"),
                template=_resource("NimbusMachineTemplate", "nimbusmachinetemplates"),
                spec=NimbusMachineSpec,
                reconciler=CapacityReconciler,
            ),
        ),
        identities=(
            replace(
                identity,
                resource=_resource("NimbusIdentity", "nimbusidentities", namespaced=False),
                keys=("password",),
            ),
        ),
    )
    return ProviderUnderTest(
        components={
            "infrastructure": replace(
                COMPONENT, label="infrastructure-nimbus", groups=(controllers,)
            )
        },
        repository=expected_folder("everything"),
        infrastructure=NoInfrastructure,
    )


PROVIDER = _provider()


class Clients(SessionFactory[str]):
    """The password is the client."""

    def open(self, credentials: Credentials) -> str:
        return credentials["password"]


def _template(env: InfrastructureEnvironment, cluster: NamespacedName | None) -> None:
    kind = env.machine_kind
    assert kind.template is not None
    owners: list[JSON] = []
    if cluster is not None:
        owner = env.api.find("Cluster", cluster)
        assert owner is not None
        owners = [
            {
                "apiVersion": owner["apiVersion"],
                "kind": "Cluster",
                "name": cluster.name,
                "uid": owner["metadata"]["uid"],
            }
        ]
    env.api.add(
        {
            "apiVersion": kind.template.api_version,
            "kind": kind.template.kind,
            "metadata": {"namespace": NAMESPACE, "name": "t1", "ownerReferences": owners},
            "spec": {"template": {"spec": env.manifests.sample_spec(kind.resource.kind)}},
        }
    )


def _status(env: InfrastructureEnvironment) -> JSON:
    found = env.api.find("NimbusMachineTemplate", TEMPLATE) or {}
    return dict(found.get("status") or {})


class TestCapacity(ScriptedMachines):
    """What ``capacity`` gets, and how its failures are handled."""

    @pytest.fixture(autouse=True)
    def sessions(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(CapacityReconciler, "session_factory", Clients)

    @scenario
    async def test_it_has_the_session_of_the_cluster_that_owns_the_template(
        self, env: InfrastructureEnvironment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Proves: IM-16."""
        scopes: list[InfraMachineTemplateScope[Any]] = []

        def answer(template: InfraMachineTemplateScope[Any]) -> MachineCapacity:
            scopes.append(template)
            assert template.session(Clients) == template.credentials["password"]
            return CAPACITY

        monkeypatch.setattr(CapacityReconciler, "answer", answer, raising=False)
        cluster = await env.running_cluster()
        _template(env, cluster)
        await env.eventually("written", lambda: _status(env).get("capacity") == {"cpu": "8"})
        assert _status(env)["nodeInfo"] == {"architecture": "arm64"}
        scope = scopes[-1]
        assert scope.infra_cluster is not None
        assert scope.cluster is not None
        assert scope.infra_cluster.spec(NimbusClusterSpec).region
        assert (scope.name, scope.spec.flavor) == ("t1", scopes[0].spec.flavor)

    @scenario
    async def test_without_cluster_only_the_session_waits(
        self, env: InfrastructureEnvironment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asks = [True]

        def answer(template: InfraMachineTemplateScope[Any]) -> MachineCapacity:
            if asks[0]:
                template.session(Clients)
            return CAPACITY

        monkeypatch.setattr(CapacityReconciler, "answer", answer, raising=False)
        _template(env, None)
        await env.quiet()
        assert _status(env) == {}
        asks[0] = False
        env.api.change("NimbusMachineTemplate", TEMPLATE, {"metadata": {"labels": {"a": "b"}}})
        await env.eventually("written", lambda: _status(env).get("capacity"))

    @scenario
    async def test_a_template_that_waits_for_its_identity_is_reconciled_again(
        self, env: InfrastructureEnvironment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """After the sync period: no event wakes the template when its identity changes."""
        calls: list[object] = []

        def answer(template: InfraMachineTemplateScope[Any]) -> MachineCapacity:
            calls.append(template)
            template.session(Clients)
            return CAPACITY

        monkeypatch.setattr(CapacityReconciler, "answer", answer, raising=False)
        await env.stop()
        env.start(sync_period=20)
        _template(env, None)
        await env.eventually("called again", lambda: len(calls) > 2)

    @scenario
    async def test_an_infrastructure_cluster_that_appears_later_wakes_the_template(
        self, env: InfrastructureEnvironment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def answer(template: InfraMachineTemplateScope[Any]) -> MachineCapacity:
            template.session(Clients)
            return CAPACITY

        monkeypatch.setattr(CapacityReconciler, "answer", answer, raising=False)
        await env.stop()
        env.start(sync_period=0)
        cluster = env.core.add_cluster()
        infra_cluster = env.core.infra_cluster(cluster)
        env.api.remove("NimbusCluster", cluster)
        await env.eventually("gone", lambda: env.is_gone(env.cluster_kind, cluster))
        _template(env, cluster)
        await env.quiet()
        assert _status(env) == {}
        metadata = {
            key: value
            for key, value in infra_cluster["metadata"].items()
            if key in ("name", "namespace", "labels", "ownerReferences")
        }
        env.api.add({**infra_cluster, "metadata": metadata})
        await env.eventually("written", lambda: _status(env).get("capacity"))

    @scenario
    async def test_errors_are_events_and_are_retried(
        self, env: InfrastructureEnvironment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        results: list[Any] = [
            ReconcileError("FlavorNotFound", "no flavor of that name", retry_after=5),
            RateLimitedError("too many requests", retry_after=5),
            Waiting("FlavorPending", requeue_after=1),
            CAPACITY,
        ]

        def answer(template: InfraMachineTemplateScope[Any]) -> Any:
            result = results.pop(0) if len(results) > 1 else results[0]
            if isinstance(result, Exception):
                raise result
            return result

        monkeypatch.setattr(CapacityReconciler, "answer", answer, raising=False)
        _template(env, await env.running_cluster())
        await env.eventually("written", lambda: _status(env).get("capacity"))
        reasons = {event["reason"] for event in env.api.all("Event")}
        assert {"FlavorNotFound", "RateLimited"} <= reasons


def test_a_unit_test_builds_the_scope() -> None:
    scope = testing.infra_machine_template(
        NimbusMachineSpec(flavor="m1"), session="client", credentials={"password": "secret"}
    )

    assert scope.session(Clients) == "client"
    assert scope.credentials["password"] == "secret"
    assert scope.spec.flavor == "m1"
