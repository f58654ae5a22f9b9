"""Managed control planes: whose credentials their calls have, and when sessions are renewed."""

from __future__ import annotations

import base64
from typing import Any, ClassVar

import pytest

from capsmith_runtime.controlplane.managed.api import (
    ManagedControlPlaneDeleteScope,
    ManagedControlPlaneReconciler,
    ManagedControlPlaneScope,
    ManagedControlPlaneState,
)
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.reconcile.results import Deleted, Waiting
from capsmith_runtime.reconcile.sessions import Credentials, SessionFactory
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.controlplane.base import ManagedControlPlaneConformance
from capsmith_runtime.testing.controlplane.managed_environment import (
    CLUSTER,
    CONTROL_PLANE,
    ManagedControlPlaneEnvironment,
)
from capsmith_runtime.testing.identities import remove_identity
from tests.runtime.scenarios.providers import provider, run_with

PROVIDER = provider("managed")
KIND, NAME = "LagoonIdentity", "lagoon"
IDENTITY = NamespacedName("", NAME)
OTHER = {"kind": KIND, "name": "other"}
SECRET = NamespacedName("lagoon-system", "lagoon-credentials")


class Clients(SessionFactory[str]):
    """Opens the credentials as a string."""

    opened: ClassVar[list[str]]

    def open(self, credentials: Credentials) -> str:
        session = f"{credentials.identity} {credentials.get('token')}"
        self.opened.append(session)
        return session


class Sessions(ManagedControlPlaneReconciler[Any]):
    """Records the session of each call."""

    session_factory = Clients
    calls: ClassVar[list[tuple[str, str]]]

    def reconcile_normal(
        self, control_plane: ManagedControlPlaneScope[Any]
    ) -> ManagedControlPlaneState | Waiting:
        """Record the session, and wait."""
        self.calls.append(("normal", control_plane.session(Clients)))
        return Waiting("Creating", requeue_after=None)

    def reconcile_delete(self, control_plane: ManagedControlPlaneDeleteScope[Any]) -> Deleted:
        """Record the session; without one, the control plane waits."""
        self.calls.append(("delete", control_plane.session(Clients)))
        return Deleted()


@run_with("managed")
class TestIdentities(ManagedControlPlaneConformance):
    """Managed control planes in the manager that also serves the identities."""

    @pytest.fixture(autouse=True)
    def record(self, monkeypatch: pytest.MonkeyPatch, env: ManagedControlPlaneEnvironment) -> None:
        monkeypatch.setattr(Clients, "opened", [], raising=False)
        monkeypatch.setattr(Sessions, "calls", [], raising=False)
        env.use_beside(Sessions)

    @scenario
    async def test_it_has_the_identity_of_its_clusters_infrastructure(
        self, env: ManagedControlPlaneEnvironment
    ) -> None:
        _add(env)
        identity = remove_identity(env.api, {"kind": KIND, "name": NAME})
        env.add_control_plane()
        await env.eventually("it waits", lambda: env.says("Available", "False", "IdentityNotFound"))
        env.api.add(identity)
        await env.eventually("it is called", lambda: Sessions.calls)
        assert set(Sessions.calls) == {("normal", "lagoon change-me")}
        annotation = "controlplane.cluster.x-k8s.io/identity"
        assert env.obj()["metadata"]["annotations"][annotation] == f"{KIND}/{NAME}"
        await env.eventually("it is kept", lambda: _is_kept(env))

    @scenario
    async def test_its_own_identity_takes_precedence(
        self, env: ManagedControlPlaneEnvironment
    ) -> None:
        _add(env)
        env.api.add(_other({"list": ["another"]}))
        env.add_control_plane(identityRef=OTHER)
        refused = ("Available", "False", "IdentityNotAllowed")
        await env.eventually("it is refused", lambda: env.says(*refused))
        assert Sessions.calls == []
        allowed = {"spec": {"allowedNamespaces": {"list": ["default"]}}}
        env.api.change(KIND, NamespacedName("", "other"), allowed)
        await env.eventually("it is called", lambda: Sessions.calls)
        assert set(Sessions.calls) == {("normal", "other change-me")}

    @scenario
    async def test_a_changed_secret_opens_a_new_session(
        self, env: ManagedControlPlaneEnvironment
    ) -> None:
        _add(env)
        env.add_control_plane()
        await env.eventually("it is called", lambda: Sessions.calls)
        token = base64.b64encode(b"renewed").decode()
        env.api.change("Secret", SECRET, {"data": {"token": token}})
        renewed = ("normal", "lagoon renewed")
        await env.eventually("it is called again", lambda: Sessions.calls[-1] == renewed)
        assert Clients.opened == ["lagoon change-me", "lagoon renewed"]

    @scenario
    async def test_its_deletion_needs_no_infrastructure_cluster(
        self, env: ManagedControlPlaneEnvironment
    ) -> None:
        infra_cluster = _add(env)
        env.add_control_plane()
        await env.eventually("it is called", lambda: Sessions.calls)
        kind = infra_cluster["kind"]
        key = NamespacedName("default", infra_cluster["metadata"]["name"])
        env.api.change(kind, key, {"metadata": {"finalizers": None}})
        env.api.remove(kind, key)
        await env.quiet()
        Sessions.calls.clear()
        env.api.remove(env.kind.resource.kind, CONTROL_PLANE)
        await env.eventually("it is deleted", lambda: Sessions.calls)
        assert Sessions.calls == [("delete", "lagoon change-me")]

    @scenario
    async def test_one_that_never_had_an_identity_is_deleted_without(
        self, env: ManagedControlPlaneEnvironment
    ) -> None:
        """The Cluster names infrastructure that does not exist, and waits for its control plane."""
        infra_cluster = _add(env)
        key = NamespacedName("default", infra_cluster["metadata"]["name"])
        env.api.change(infra_cluster["kind"], key, {"metadata": {"finalizers": None}})
        env.api.remove(infra_cluster["kind"], key)
        env.add_control_plane()
        waiting = ("Available", "False", "WaitingForClusterInfrastructureReady")
        await env.eventually("it waits", lambda: env.says(*waiting))
        env.api.remove(env.kind.resource.kind, CONTROL_PLANE)
        kind = env.kind.resource.kind
        await env.eventually("it is gone", lambda: env.api.find(kind, CONTROL_PLANE) is None)
        assert Sessions.calls == []


def _add(env: ManagedControlPlaneEnvironment) -> JSON:
    """Add the Cluster and its infrastructure cluster, which names the sample identity."""
    env.add_cluster()
    group = "infrastructure.cluster.x-k8s.io"
    reference = {"apiGroup": group, "kind": "LagoonCluster", "name": CLUSTER.name}
    if env.is_old_core:
        version = env.kind.resource.version
        reference = {
            "apiVersion": f"{group}/{version}",
            "kind": "LagoonCluster",
            "name": CLUSTER.name,
        }
    env.api.change("Cluster", CLUSTER, {"spec": {"infrastructureRef": reference}})
    cluster = env.api.find("Cluster", CLUSTER)
    assert cluster is not None
    owner = {key: cluster[key] for key in ("apiVersion", "kind")}
    owner |= {"name": CLUSTER.name, "uid": cluster["metadata"]["uid"]}
    return env.api.add(
        {
            "apiVersion": f"{group}/{env.kind.resource.version}",
            "kind": "LagoonCluster",
            "metadata": {
                "namespace": CLUSTER.namespace,
                "name": CLUSTER.name,
                "labels": {"cluster.x-k8s.io/cluster-name": CLUSTER.name},
                "ownerReferences": [owner],
            },
            "spec": env.manifests.sample_spec("LagoonCluster"),
        }
    )


def _is_kept(env: ManagedControlPlaneEnvironment) -> bool:
    identity = env.api.find(KIND, IDENTITY)
    return identity is not None and bool(identity["metadata"].get("finalizers"))


def _other(allowed: JSON) -> JSON:
    return {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1",
        "kind": KIND,
        "metadata": {"name": "other"},
        "spec": {"secretRef": {"name": SECRET.name}, "allowedNamespaces": allowed},
    }
