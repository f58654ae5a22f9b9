"""A manager that is woken by objects of other kinds, and its author's code that changes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from capsmith.clusters.processes.audit import ResourceAttributes, collect_granted, collect_used
from capsmith.clusters.processes.kube import JSON, KubeClient
from capsmith.clusters.processes.pki import Pki
from capsmith.clusters.processes.servers import ApiServer
from capsmith.clusters.processes.tools.catalogue import core_module, default_core
from capsmith.clusters.processes.wait import eventually
from capsmith.commands.generate import generate
from tests.e2e.tools.required import required_toolbox
from tests.realapi.managers import Installation, install_core_crds

GROUP = "infrastructure.slip.example.com"
SLIP = f"{GROUP}/v1alpha1", "SlipCluster"
CORE = "cluster.x-k8s.io/v1beta2"
NAMESPACE = "default"
DESCRIPTION = f"""
capsmith: 1
name: slip
repository: https://github.com/example/cluster-api-provider-slip
contracts: [v1beta2]
releases: {{v0.1: v1beta2}}
groups: {{infrastructure: {GROUP}}}
infrastructure:
  SlipCluster:
    implements: InfraCluster
    spec: {{planRef: {{type: object, required: true, properties: {{name: string!}}}}}}
    watches:
    - {{apiVersion: v1, kind: ConfigMap, by: field, path: spec.planRef.name}}
    - {{apiVersion: never.slip.example.com/v1, kind: Berth, by: ownerReference}}
  SlipMachine: {{implements: InfraMachine}}
rbac:
- {{apiGroups: [""], resources: [configmaps], verbs: [create, patch, delete]}}
"""
RECONCILER = """
from capsmith_runtime.infrastructure import (
    Deleted, Endpoint, InfraClusterReconciler, InfraClusterState, Waiting
)
from .._generated.api.slip_cluster import SlipClusterSpec


class SlipClusterReconciler(InfraClusterReconciler[SlipClusterSpec]):
    def reconcile_normal(self, cluster):
        plan = cluster.client.get("v1", "ConfigMap", cluster.spec.plan_ref.name)
        if plan is None:
            return Waiting("WaitingForPlan", requeue_after=None)
        if plan["data"]["do"] == "overreach":
            cluster.client.delete("v1", "Secret", "any")
        kind = {"apiVersion": "v1", "kind": "ConfigMap"}
        if cluster.client.get("v1", "ConfigMap", f"{cluster.name}-start") is None:
            cluster.client.create({**kind, "metadata": {"name": f"{cluster.name}-start"}})
        record = {**kind, "metadata": {"name": f"{cluster.name}-record"}}
        cluster.client.apply({**record, "data": {plan["data"]["do"]: "done"}})
        return InfraClusterState(control_plane_endpoint=Endpoint("10.0.0.1", 6443))

    async def reconcile_delete(self, cluster):
        for found in await cluster.client.list_async("v1", "ConfigMap"):
            name = found["metadata"]["name"]
            if name.startswith(f"{cluster.name}-"):
                await cluster.client.delete_async("v1", "ConfigMap", name)
        return Deleted()
"""


@pytest.fixture
def installation(api_server: ApiServer, pki: Pki, tmp_path: Path) -> Installation:
    tools = required_toolbox("the tests with core's CRDs", ["k8s", core_module(default_core())])
    description, repository = tmp_path / "provider.yaml", tmp_path / "repository"
    description.write_text(DESCRIPTION)
    assert generate(description, repository).exit_code == 0
    (package,) = (repository / "src").iterdir()
    (package / "controllers" / "slip_cluster.py").write_text(RECONCILER)
    kinds = ("clusters.cluster.x-k8s.io", "machines.cluster.x-k8s.io")
    install_core_crds(api_server.client, tools, default_core(), *kinds)
    return Installation(api_server, pki, repository, "config")


@pytest.fixture
def slip(api: KubeClient, installation: Installation) -> Iterator[JSON]:
    """Return an object whose plan does not exist yet, after its owner is created."""
    reference = {"apiGroup": GROUP, "kind": SLIP[1], "name": "slip"}
    owner = api.create(_object(CORE, "Cluster", "slip", spec={"infrastructureRef": reference}))
    made = _object(*SLIP, "slip", spec={"planRef": {"name": "plan"}})
    identity = {"name": "slip", "uid": owner["metadata"]["uid"]}
    made["metadata"]["ownerReferences"] = [{"apiVersion": CORE, "kind": "Cluster", **identity}]
    yield api.create(made)
    api.delete(owner)
    for name in ("plan", "slip-start", "slip-record"):
        if api.find("v1", "ConfigMap", name, NAMESPACE) is not None:
            api.delete(_object("v1", "ConfigMap", name))


def _object(api_version: str, kind: str, name: str, **rest: JSON) -> JSON:
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}


def _ready(api: KubeClient) -> tuple[str, str]:
    conditions = api.get(*SLIP, "slip", NAMESPACE).get("status", {}).get("conditions", ())
    found = [each for each in conditions if each["type"] == "Ready"]
    return (found[0]["reason"], found[0]["message"]) if found else ("", "")


def _record(api: KubeClient) -> JSON:
    return api.find("v1", "ConfigMap", "slip-record", NAMESPACE) or {}


def test_a_watched_object_is_read_and_what_is_undeclared_refused(
    api: KubeClient, api_server: ApiServer, installation: Installation, slip: JSON
) -> None:
    """Without resync only the watch calls the reconciler; one watched kind is never served.

    Proves: RB-06.
    """
    plan = _object("v1", "ConfigMap", "plan", data={"do": "dig"})
    manager = installation.manager(0, "--sync-period=0s")
    try:
        manager.start()
        eventually(lambda: _ready(api)[0] == "WaitingForPlan", timeout=60, what="it waits")
        api.create(plan)
        eventually(lambda: _record(api).get("data") == {"dig": "done"}, timeout=30)
        (manages,) = _record(api)["metadata"]["managedFields"]
        assert (manages["manager"], manages["operation"]) == ("infrastructure-slip", "Apply")

        api.patch(plan, {"data": {"do": "build"}})
        eventually(lambda: _record(api).get("data") == {"build": "done"}, timeout=30)

        api.patch(plan, {"data": {"do": "overreach"}})
        eventually(lambda: _ready(api)[0] == "PermissionNotDeclared", timeout=30)
        rule = '{apiGroups: [""], resources: [secrets], verbs: [delete]}'
        assert f"add {rule} to rbac" in _ready(api)[1]

        api.delete(slip)
        eventually(lambda: api.find(*SLIP, "slip", NAMESPACE) is None, timeout=30)
        assert api.find("v1", "ConfigMap", "slip-start", NAMESPACE) is None
        assert _record(api) == {}
        assert manager.complaints() == []
    finally:
        manager.process.stop()
    requested = collect_used(api_server.audit_log, installation.user)
    verbs = {"create", "delete", "get", "list", "patch", "watch"}
    assert _of_config_maps(requested) == verbs
    assert _of_config_maps(collect_granted(api, installation.user)) == verbs
    assert ResourceAttributes("", "secrets", "delete") not in requested


def test_an_object_of_the_user_is_taken_over_only_with_an_owner(
    api: KubeClient, installation: Installation, slip: JSON
) -> None:
    """Of two field managers with the same fields the last would win."""
    api.create(_object("v1", "ConfigMap", "plan", data={"do": "dig"}))
    mine = api.create(_object("v1", "ConfigMap", "slip-record", data={"mine": "1"}))
    manager = installation.manager(0, "--sync-period=0s")
    try:
        manager.start()
        eventually(lambda: _ready(api)[0] == "KubernetesAlreadyExists", timeout=60)
        assert _record(api)["data"] == {"mine": "1"}

        owner = {"apiVersion": SLIP[0], "kind": SLIP[1], "name": "slip"}
        owners = [{**owner, "uid": slip["metadata"]["uid"]}]
        api.patch(mine, {"metadata": {"ownerReferences": owners}})
        eventually(lambda: "dig" in _record(api)["data"], timeout=60, what="it is adopted")
        assert _record(api)["data"] == {"mine": "1", "dig": "done"}
        api.delete(slip)
        eventually(lambda: api.find(*SLIP, "slip", NAMESPACE) is None, timeout=30)
    finally:
        manager.process.stop()


def _of_config_maps(accesses: set[ResourceAttributes]) -> set[str]:
    return {each.verb for each in accesses if each[:2] == ("", "configmaps")}
