"""What a reconciler stores before its object is provisioned, and how it reads it again."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from capsmith_runtime.infrastructure import (
    Address,
    DecodingError,
    Endpoint,
    FailureDomain,
    InfraClusterScope,
    InfraClusterState,
    InfraClusterView,
    InfraMachineDeleteScope,
    InfraMachineScope,
    Waiting,
)
from capsmith_runtime.kube.client import JSON
from capsmith_runtime.testing import infrastructure as testing
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.environment import condition
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from tests.runtime.infrastructure import scripted_provider
from tests.runtime.infrastructure.scripted_provider import (
    PROVISIONED,
    ScriptedClusterReconciler,
    ScriptedMachines,
    ScriptFactory,
    add_machine,
    ready_condition,
)

PROVIDER = replace(scripted_provider.PROVIDER)
for _kind in ("AcmeCluster", "AcmeMachine"):
    # The example has no status fields of its own.
    _schema = PROVIDER.manifests.schema(_kind, "v1alpha1")
    _schema["properties"]["status"]["properties"]["operationID"] = {"type": "string"}
SOON = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    operation_id: str | None = field(default=None, metadata={"json": "operationID"})


CREATING = Waiting(
    "Creating",
    "the server is being created",
    None,
    status=Status(operation_id="op-1"),
    provider_id="acme://1",
    addresses=[Address("InternalIP", "10.0.0.1")],
)


class TestPartialResults(ScriptedMachines):
    """Results of an operation that takes longer than one call."""

    @scenario
    async def test_partial_results_survive_a_crash(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        """Proves: IM-01, IM-03, IM-08."""
        script = normal(CREATING)
        key = await add_machine(env)
        await env.eventually(
            "stored", lambda: env.core.infra_machine(key).get("status", {}).get("operationID")
        )
        obj = env.core.infra_machine(key)
        assert obj["spec"]["providerID"] == "acme://1"
        assert obj["status"]["addresses"] == [{"type": "InternalIP", "address": "10.0.0.1"}]
        assert not env.has_machine(key)
        assert condition(obj, "Ready") == ("False", "Creating")

        await env.kill()
        script.results = [Waiting("Booting", "", SOON), PROVISIONED]
        calls = len(script.calls)
        env.start()
        await env.eventually("provisioned", lambda: env.has_machine(key))
        machine = script.calls[calls]
        assert machine.status(Status) == Status(operation_id="op-1")
        assert machine.provider_id == "acme://1"

    @scenario
    async def test_an_empty_field_is_removed(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        normal(replace(CREATING, requeue_after=SOON), replace(PROVISIONED, status=Status()))
        key = await add_machine(env)
        await env.eventually("provisioned", lambda: env.has_machine(key))
        assert "operationID" not in env.core.infra_machine(key)["status"]

    @scenario
    async def test_another_provider_id_is_refused(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        """Proves: IM-01."""
        normal(replace(CREATING, requeue_after=SOON), replace(CREATING, provider_id="acme://2"))
        key = await add_machine(env)
        expected = ("False", "ProviderIDChanged")
        await env.eventually("refused", lambda: ready_condition(env, key) == expected)
        assert env.core.infra_machine(key)["spec"]["providerID"] == "acme://1"

    @scenario
    async def test_unchanged_partial_results_are_written_once(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        script = normal(replace(CREATING, requeue_after=SOON))
        key = await add_machine(env)
        await env.eventually("called often", lambda: len(script.calls) > 10)
        kind = env.machine_kind.resource.kind
        assert env.api.written(kind, key) == ["patch", "patch", "patch_status"]

    @scenario
    async def test_a_cluster_stores_its_status_and_machines_read_it(
        self,
        env: InfrastructureEnvironment,
        normal: ScriptFactory,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        read: list[Status] = []

        def reconcile(self: object, cluster: InfraClusterScope[Any]) -> InfraClusterState | Waiting:
            read.append(cluster.status(Status))
            if read[-1].operation_id is None:
                return Waiting("Creating", "", SOON, status=Status(operation_id="op-7"))
            return InfraClusterState(status=Status(operation_id="net-7"))

        monkeypatch.setattr(ScriptedClusterReconciler, "reconcile_normal", reconcile)
        script = normal(PROVISIONED)
        key = await add_machine(env)
        await env.eventually("provisioned", lambda: env.has_machine(key))
        assert [status.operation_id for status in read[:2]] == [None, "op-7"]
        view = script.calls[-1].infra_cluster
        assert view is not None
        assert view.status(Status) == Status(operation_id="net-7")

    @scenario
    async def test_a_cluster_stores_its_endpoint_and_failure_domains(
        self, env: InfrastructureEnvironment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Proves: IC-02, IC-08."""
        endpoints: list[Endpoint | None] = []
        results = [
            Waiting(
                "Booting",
                requeue_after=SOON,
                control_plane_endpoint=Endpoint("10.0.0.9", 6443),
                failure_domains=[FailureDomain("a"), FailureDomain("b", control_plane=False)],
            ),
            Waiting("Booting", requeue_after=SOON),
            Waiting("Booting", requeue_after=SOON, failure_domains=[FailureDomain("c")]),
            Waiting("Booting", requeue_after=None, failure_domains=[]),
        ]
        seen: list[JSON] = []

        def reconcile(self: object, cluster: InfraClusterScope[Any]) -> Waiting:
            endpoints.append(cluster.control_plane_endpoint)
            seen.append(env.core.infra_cluster(key))
            return results[min(len(seen), len(results)) - 1]

        monkeypatch.setattr(ScriptedClusterReconciler, "reconcile_normal", reconcile)
        key = env.core.add_cluster()
        await env.eventually("called", lambda: len(seen) >= 4)
        await env.quiet()
        assert endpoints[:2] == [None, Endpoint("10.0.0.9", 6443)]
        domains = [obj.get("status", {}).get("failureDomains") for obj in seen[:4]]
        known = [{"name": "a", "controlPlane": True}, {"name": "b", "controlPlane": False}]
        assert domains == [None, known, known, [{"name": "c", "controlPlane": True}]]
        assert "failureDomains" not in env.core.infra_cluster(key)["status"]
        assert not env.has_cluster(key)

    @scenario
    async def test_an_endpoint_of_the_user_is_kept(
        self, env: InfrastructureEnvironment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Proves: IC-02."""
        waiting = Waiting("Booting", control_plane_endpoint=Endpoint("10.0.0.9", 6443))
        monkeypatch.setattr(
            ScriptedClusterReconciler, "reconcile_normal", lambda self, cluster: waiting
        )
        await env.stop()
        key = env.core.add_cluster()
        given = {"host": "api.example.com", "port": 443}
        kind = env.cluster_kind.resource.kind
        env.api.change(kind, key, {"spec": {"controlPlaneEndpoint": given}})
        env.start()
        await env.eventually("reported", lambda: condition(env.core.infra_cluster(key), "Ready"))
        await env.quiet()
        assert env.core.infra_cluster(key)["spec"]["controlPlaneEndpoint"] == given

    @scenario
    async def test_a_machine_has_no_endpoint_and_no_failure_domains(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        normal(Waiting("Booting", failure_domains=[FailureDomain("a")]))
        key = await add_machine(env)
        expected = ("False", "InvalidResult")
        await env.eventually("refused", lambda: ready_condition(env, key) == expected)

    def test_failure_domains_have_different_names(self) -> None:
        with pytest.raises(ValueError, match="each name once"):
            Waiting("Booting", failure_domains=[FailureDomain("a"), FailureDomain("a")])

    @scenario
    async def test_a_cluster_has_no_provider_id(
        self, env: InfrastructureEnvironment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(
            ScriptedClusterReconciler, "reconcile_normal", lambda self, cluster: CREATING
        )
        key = env.core.add_cluster()
        expected = ("False", "InvalidResult")
        await env.eventually(
            "refused", lambda: condition(env.core.infra_cluster(key), "Ready") == expected
        )

    @scenario
    async def test_a_move_drops_the_status(
        self, env: InfrastructureEnvironment, normal: ScriptFactory
    ) -> None:
        """Proves: ST-11."""
        script = normal(CREATING)
        key = await add_machine(env)
        await env.eventually("stored", lambda: _operation(env.core.infra_machine(key)))
        await env.kill()
        env.api.change(env.machine_kind.resource.kind, key, {"status": {"operationID": None}})
        env.start()
        await env.eventually("stored again", lambda: _operation(env.core.infra_machine(key)))
        assert script.calls[-1].status(Status) == Status()


def _operation(obj: JSON) -> str | None:
    value: str | None = obj.get("status", {}).get("operationID")
    return value


def test_builders_take_the_status_of_an_earlier_call() -> None:
    status = Status(operation_id="op-1")
    view = testing.infra_cluster_view({}, status=Status(operation_id="op-2"))
    machine: InfraMachineScope[Any] = testing.infra_machine({}, status=status)

    assert machine.status(Status) == status
    assert testing.infra_cluster({}, status=status).status(Status) == status
    assert testing.infra_machine_pool({}, status=status).status(Status) == status
    deletion: InfraMachineDeleteScope[Any] = testing.infra_machine_deletion(
        {}, status=status, infra_cluster=view
    )
    assert deletion.status(Status) == status
    assert deletion.infra_cluster is not None
    assert deletion.infra_cluster.status(Status) == Status(operation_id="op-2")
    assert testing.infra_machine({}).status(Status) == Status()


def test_a_status_of_another_type_is_reported() -> None:
    view = InfraClusterView(
        name="c",
        namespace="n",
        external_id="c.1",
        control_plane_endpoint=None,
        raw_spec={},
        raw_status={"operationID": 1},
    )
    with pytest.raises(DecodingError, match=r"status\.operationID: expected text"):
        view.status(Status)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"provider_id": ""}, "provider_id must have 1 to 512"),
        ({"provider_id": "x" * 513}, "provider_id must have 1 to 512"),
        ({"addresses": [Address("Hostname", "h")] * 257}, "at most 256"),
    ],
)
def test_partial_results_fit_into_the_schema(wrong: dict[str, Any], message: str) -> None:
    """Proves: IM-01, IM-08."""
    with pytest.raises(ValueError, match=message):
        Waiting("Creating", **wrong)


@pytest.mark.parametrize(
    "largest",
    [
        {"provider_id": "x" * 512},
        {"addresses": [Address("Hostname", "h")] * 256},
        {"failure_domains": [FailureDomain(f"zone-{number}") for number in range(100)]},
    ],
)
def test_partial_results_may_be_as_large_as_the_schema_allows(largest: dict[str, Any]) -> None:
    """Proves: IM-01, IM-08."""
    waiting = Waiting("Creating", **largest)

    assert {name: getattr(waiting, name) for name in largest} == largest
