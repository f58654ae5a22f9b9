"""Records of infrastructure clusters in their spec, in a running manager."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from capsmith_runtime.contract import external_id
from capsmith_runtime.infrastructure import (
    Condition,
    Credentials,
    Endpoint,
    InfraClusterScope,
    InfraClusterState,
    SessionFactory,
)
from capsmith_runtime.infrastructure.kinds import InfraClusterKind
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from tests.runtime.infrastructure import scripted_provider
from tests.runtime.infrastructure.scripted_provider import (
    GROUP,
    ScriptedClusterReconciler,
    ScriptedMachines,
)

_GROUP: Any = scripted_provider.COMPONENT.groups[0]
_CLUSTER: InfraClusterKind = _GROUP.clusters[0]
_WITH_RECORDS = replace(_CLUSTER, features=_CLUSTER.features | {"recorded"})
COMPONENT = replace(
    scripted_provider.COMPONENT, groups=(replace(_GROUP, clusters=(_WITH_RECORDS,)),)
)
PROVIDER = replace(scripted_provider.PROVIDER, components={"infrastructure": COMPONENT})


class Accounts(SessionFactory[str]):
    """Sessions are tokens, which are accounts."""

    def open(self, credentials: Credentials) -> str:
        return credentials["token"]

    def account(self, session: str) -> str:
        return session

    def close(self, session: str) -> None:
        """Do nothing: a token stays valid."""


class TestRecords(ScriptedMachines):
    """Clusters are owned by the topology controller, which compares their annotations with its."""

    @pytest.fixture(autouse=True)
    def ids(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """Return the external ids of the calls."""
        ids: list[str] = []

        def reconcile(self: object, cluster: InfraClusterScope[Any]) -> InfraClusterState:
            ids.append(cluster.external_id)
            endpoint = Endpoint("10.0.0.100", 6443)
            conditions = [Condition(type="Peered", status=True, reason="Peered")]
            return InfraClusterState(control_plane_endpoint=endpoint, conditions=conditions)

        monkeypatch.setattr(ScriptedClusterReconciler, "reconcile_normal", reconcile)
        monkeypatch.setattr(ScriptedClusterReconciler, "session_factory", Accounts)
        return ids

    @scenario
    async def test_a_new_cluster_has_its_records_in_the_spec(
        self, env: InfrastructureEnvironment, ids: list[str]
    ) -> None:
        """No annotation is written, and the recorded id stays the same after a move.

        Proves: SM-09.
        """
        key = await env.running_cluster()
        await env.quiet()
        cluster = env.core.infra_cluster(key)
        recorded = cluster["spec"]["recorded"]
        assert recorded.keys() == {"account", "conditionTypes", "externalID", "identity"}
        assert recorded["conditionTypes"] == "Peered"
        assert recorded["externalID"] == external_id.create(cluster)
        assert recorded["identity"] == "AcmeIdentity/acme"
        assert not cluster["metadata"].get("annotations")

        await _move(env, key)
        moved = env.core.infra_cluster(key)
        assert moved["metadata"]["uid"] != cluster["metadata"]["uid"]
        assert moved["spec"]["recorded"] == recorded
        assert set(ids) == {recorded["externalID"]}

    @scenario
    async def test_records_in_annotations_stay_there(
        self, env: InfrastructureEnvironment, ids: list[str]
    ) -> None:
        """A cluster of an older release keeps its id, also for that release after a rollback."""
        key = await env.running_cluster()
        await env.quiet()
        former = {
            f"{GROUP}/account": env.core.infra_cluster(key)["spec"]["recorded"]["account"],
            f"{GROUP}/external-id": f"{key.name}.uid-before-a-move",
            f"{GROUP}/conditions": "Routed",
        }
        ids.clear()
        await _move(env, key, annotations=former)
        cluster = env.core.infra_cluster(key)
        assert cluster["metadata"]["annotations"] == {**former, f"{GROUP}/conditions": "Peered"}
        # Older releases did not record the identity.
        assert cluster["spec"]["recorded"] == {"identity": "AcmeIdentity/acme"}
        assert set(ids) == {former[f"{GROUP}/external-id"]}

    @scenario
    async def test_a_copied_id_is_replaced(
        self, env: InfrastructureEnvironment, ids: list[str]
    ) -> None:
        key = await env.running_cluster()
        ids.clear()
        await _move(env, key, recorded={"externalID": "another.uid-1"})
        cluster = env.core.infra_cluster(key)
        assert cluster["spec"]["recorded"]["externalID"] == external_id.create(cluster)
        assert set(ids) == {external_id.create(cluster)}


async def _move(
    env: InfrastructureEnvironment,
    key: NamespacedName,
    *,
    annotations: JSON | None = None,
    recorded: JSON | None = None,
) -> None:
    """Replace a cluster by an object with another uid and no status, as clusterctl move does.

    With ``annotations`` or ``recorded``, these are the only records of the new object.
    """
    await env.stop()
    cluster = env.core.infra_cluster(key)
    kind = cluster["kind"]
    env.api.change(kind, key, {"metadata": {"finalizers": None}})
    env.api.remove(kind, key)
    metadata = {k: v for k, v in cluster["metadata"].items() if k not in _SET_BY_SERVER}
    spec = dict(cluster["spec"])
    if annotations is not None or recorded is not None:
        del spec["recorded"]
    if annotations is not None:
        metadata["annotations"] = annotations
    if recorded is not None:
        spec["recorded"] = recorded
    new = {name: cluster[name] for name in ("apiVersion", "kind")}
    env.api.add({**new, "metadata": metadata, "spec": spec})
    env.start()
    await env.eventually("provisioned", lambda: env.has_cluster(key))
    await env.quiet()


_SET_BY_SERVER = ("uid", "resourceVersion", "generation", "creationTimestamp")
