"""Add-ons whose calls have the credentials of an identity."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from capsmith_runtime.addon.api import (
    AddonDeleteScope,
    AddonReconciler,
    AddonScope,
    AddonState,
    Workload,
)
from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.kube.client import NamespacedName
from capsmith_runtime.reconcile.results import Deleted
from capsmith_runtime.reconcile.sessions import Credentials, SessionFactory
from capsmith_runtime.testing.conformance.base import KindCase, scenario
from capsmith_runtime.testing.identities import add_identities, find_identity_kinds, remove_identity
from tests.runtime.scenarios.addon.base import ScriptedConformance
from tests.runtime.scenarios.addon.environment import SELECTED, ScriptedEnvironment, serve
from tests.runtime.scenarios.providers import provider, run_with

PROVIDER = provider("extension")
SECRET = NamespacedName("beacon-addon-system", "beacon-credentials")
REFERENCE = {"kind": "BeaconIdentity", "name": "beacon"}


class Clients(SessionFactory[str]):
    """Opens the credentials as a string."""

    def open(self, credentials: Credentials) -> str:
        return f"{credentials.identity} {credentials['token']}"


class Sessions(AddonReconciler[Any]):
    """Records the session of each call."""

    session_factory = Clients
    calls: ClassVar[list[tuple[str, str]]]

    def reconcile_normal(
        self, addon: AddonScope[Any], cluster: Cluster, workload: Workload
    ) -> AddonState:
        """Record the session."""
        self.calls.append(("normal", addon.session(Clients)))
        return AddonState()

    def reconcile_delete(
        self, addon: AddonDeleteScope[Any], cluster: Cluster, workload: Workload
    ) -> Deleted:
        """Record the session; without one, the add-on stays."""
        self.calls.append(("delete", addon.session(Clients)))
        return Deleted()


@run_with("extension")
class TestIdentities(ScriptedConformance):
    """Add-ons in the manager that also serves the identities."""

    @pytest.fixture(autouse=True)
    def serve_identities(
        self,
        monkeypatch: pytest.MonkeyPatch,
        case: KindCase[Any],
        env: ScriptedEnvironment,
    ) -> None:
        monkeypatch.setattr(Sessions, "calls", [], raising=False)
        env.component = serve(case.component, replace(case.kind, reconciler=Sessions))
        kinds = find_identity_kinds(env.component)
        add_identities(env.api, env.manifests, kinds, env.component.namespace)

    @scenario
    async def test_an_add_on_waits_for_its_identity(self, env: ScriptedEnvironment) -> None:
        identity = remove_identity(env.api, REFERENCE)
        env.add_cluster("c1", SELECTED)
        key = env.add_addon()
        waits = "IdentityNotFound"
        await env.eventually("it waits", lambda: _reason(env, key) == waits)
        assert Sessions.calls == []
        env.api.add(identity)
        await env.eventually("it is called", lambda: Sessions.calls)
        assert set(Sessions.calls) == {("normal", "beacon change-me")}

    @scenario
    async def test_a_changed_secret_opens_a_new_session(self, env: ScriptedEnvironment) -> None:
        env.add_cluster("c1", SELECTED)
        key = env.add_addon()
        await env.eventually("it is called", lambda: Sessions.calls)
        token = base64.b64encode(b"renewed").decode()
        env.api.change("Secret", SECRET, {"data": {"token": token}})
        renewed = ("normal", "beacon renewed")
        await env.eventually("it is called again", lambda: Sessions.calls[-1] == renewed)

        identity = remove_identity(env.api, REFERENCE)
        Sessions.calls.clear()
        env.api.remove(env.kind.resource.kind, key)
        await env.quiet()
        assert env.addon(key)["metadata"]["finalizers"] == [env.kind.finalizer]
        env.api.add(identity)
        await env.eventually(
            "it is gone", lambda: env.api.find(env.kind.resource.kind, key) is None
        )
        assert Sessions.calls == [("delete", "beacon renewed")]

    @pytest.mark.parametrize("is_used", [False, True], ids=["named only", "used"])
    @scenario
    async def test_an_add_on_keeps_an_identity_that_it_has_used(
        self, env: ScriptedEnvironment, is_used: bool
    ) -> None:
        kind, name = REFERENCE["kind"], NamespacedName("", REFERENCE["name"])
        if not is_used:
            env.api.change(kind, name, {"spec": {"allowedNamespaces": None}})
        env.add_cluster("c1", SELECTED)
        key = env.add_addon()
        await env.quiet()
        assert bool(Sessions.calls) is is_used
        env.api.change(kind, name, {"spec": {"allowedNamespaces": None}})
        await env.eventually("it waits", lambda: _reason(env, key) == "IdentityNotAllowed")
        env.api.remove(kind, name)
        await env.quiet()
        assert (env.api.find(kind, name) is not None) is is_used


def _reason(env: ScriptedEnvironment, key: NamespacedName) -> str:
    entries = (env.addon(key).get("status") or {}).get("matchingClusters") or [{}]
    return str(entries[0].get("reason", ""))
