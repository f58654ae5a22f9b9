"""Lifecycle of an infrastructure machine."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from typing import Final

from capsmith_runtime.kube.client import NamespacedName
from capsmith_runtime.reconcile.accounts import read_recorded
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.infrastructure.base import (
    InfrastructureCase,
    InfrastructureConformance,
)
from capsmith_runtime.testing.environment import condition
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from capsmith_runtime.testing.limits import limits
from capsmith_runtime.testing.provider import ProviderUnderTest, RemovesServers

_PROVIDER_ID: Final = re.compile(r"[a-zA-Z][\w.+-]*://\S+")
_PARTS: Final = re.compile(r"[^\w.-]+")


class TestInfraMachine(InfrastructureConformance):
    """Lifecycle of an infrastructure machine."""

    @scenario
    async def test_a_machine_is_created_and_deleted(self, env: InfrastructureEnvironment) -> None:
        """A machine gets a server and a provider id, and its deletion leaves no server behind.

        Ready is True while the server exists.

        Proves: IM-10, IM-25.
        """
        cluster = await env.running_cluster()
        key = await env.running_machine(cluster)
        obj = env.core.infra_machine(key)
        assert obj["spec"]["providerID"]
        assert env.shows(obj, "Ready", "True")
        assert len(env.infrastructure.servers()) == 1

        env.api.remove(env.machine_kind.resource.kind, key)
        await env.eventually("it is gone", lambda: env.is_gone(env.machine_kind, key))
        assert env.infrastructure.servers() == []

    @scenario
    async def test_a_machine_costs_few_requests(self, env: InfrastructureEnvironment) -> None:
        cluster = await env.running_cluster()
        key = await env.running_machine(cluster)
        check_requests(env, key)

    @scenario
    async def test_machines_have_different_provider_ids(
        self, env: InfrastructureEnvironment
    ) -> None:
        """Each machine has its own server and its own provider id.

        Kubernetes requires the form ``<provider>://<id>`` for that of a Node.

        Proves: IM-01, IM-02.
        """
        cluster = await env.running_cluster()
        keys = [await env.running_machine(cluster, name) for name in ("m1", "m2", "m3")]
        ids = {env.core.infra_machine(key)["spec"]["providerID"] for key in keys}
        assert len(ids) == len(keys)
        for each in ids:
            assert _PROVIDER_ID.fullmatch(each), f"{each!r} is not of the form <provider>://<id>"
            assert "None" not in _PARTS.split(each), f"{each!r} has None in place of a value"
        assert len(env.infrastructure.servers()) == len(keys)

    @scenario
    async def test_a_machine_reports_its_addresses(self, env: InfrastructureEnvironment) -> None:
        """A machine reports at least one address, unless its kind does without addresses.

        If the infrastructure has none, write ``features: {addresses: false}`` into provider.yaml.

        Proves: IM-08.
        """
        if "addresses" not in env.machine_kind.features:
            return
        key = await env.running_machine(await env.running_cluster())
        await env.eventually(
            "it has an address", lambda: env.core.infra_machine(key)["status"].get("addresses")
        )
        for each in env.core.infra_machine(key)["status"]["addresses"]:
            if each["type"] in ("InternalIP", "ExternalIP"):
                ipaddress.ip_address(each["address"])

    @scenario
    async def test_a_machine_waits_for_the_cluster(self, env: InfrastructureEnvironment) -> None:
        """No server is created before the cluster's infrastructure is ready.

        Ready says what is missing.

        Proves: IM-19, IM-20.
        """
        cluster = env.core.add_cluster()
        key = env.core.add_machine(cluster)
        expected = ("False", "WaitingForClusterInfrastructureReady")
        await env.eventually(
            "it says so", lambda: env.shows(env.core.infra_machine(key), "Ready", *expected)
        )
        assert env.infrastructure.servers() == []

        env.core.infrastructure_is_ready(cluster)
        await env.eventually("it is there", lambda: env.has_machine(key))

    @scenario
    async def test_a_machine_waits_for_bootstrap_data(self, env: InfrastructureEnvironment) -> None:
        """No server is created before the bootstrap data exist; Ready says what is missing.

        Proves: IM-19, IM-20.
        """
        cluster = await env.running_cluster()
        key = env.core.add_machine(cluster, bootstrap=False)
        expected = ("False", "WaitingForBootstrapData")
        await env.eventually(
            "it says so", lambda: env.shows(env.core.infra_machine(key), "Ready", *expected)
        )
        assert env.infrastructure.servers() == []

        env.core.add_bootstrap(key)
        await env.eventually("it is there", lambda: env.has_machine(key))

    @scenario
    async def test_a_machine_without_server_is_deleted(
        self, env: InfrastructureEnvironment
    ) -> None:
        """A machine that is still waiting for its cluster or bootstrap data can be deleted.

        Proves: IM-19, IM-25.
        """
        cluster = env.core.add_cluster()
        key = env.core.add_machine(cluster, bootstrap=False)
        # The waits for cluster and bootstrap data must not hold up the deletion (IM-19).
        await env.eventually(
            "it has its finalizer",
            lambda: env.core.infra_machine(key)["metadata"].get("finalizers"),
        )
        env.api.remove(env.machine_kind.resource.kind, key)
        await env.eventually("it is gone", lambda: env.is_gone(env.machine_kind, key))

    @scenario
    async def test_a_machine_is_deleted_after_its_owners(
        self, env: InfrastructureEnvironment
    ) -> None:
        """A machine can be deleted even if its Machine and Cluster no longer exist.

        Proves: IM-25, SM-08.
        """
        cluster = await env.running_cluster()
        key = await env.running_machine(cluster)
        env.api.remove("Machine", key)
        env.api.remove("Cluster", cluster)
        env.api.remove(env.machine_kind.resource.kind, key)
        await env.eventually("it is gone", lambda: env.is_gone(env.machine_kind, key))
        assert env.infrastructure.servers() == []

    @scenario
    async def test_a_machine_that_names_another_server_deletes_nothing(
        self, env: InfrastructureEnvironment
    ) -> None:
        """Deleting a machine with a provider id that a user wrote deletes no other owner's server.

        The server may belong to a machine of another management cluster. Your code must therefore
        delete only a server with the machine's external id: compare that id before you use the
        provider id.
        """
        cluster = await env.running_cluster()
        key = await env.running_machine(cluster)
        provider_id = env.core.infra_machine(key)["spec"]["providerID"]
        await env.abandon_machine(key)
        before = env.infrastructure.servers()
        assert len(before) == 1

        named = env.add_machine_without_owner(cluster, "m2", {"providerID": provider_id})
        await env.quiet()
        env.api.remove(env.machine_kind.resource.kind, named)
        await env.quiet()
        assert env.infrastructure.servers() == before

    @scenario
    async def test_another_reconcile_changes_nothing(self, env: InfrastructureEnvironment) -> None:
        """Reconciling an unchanged machine again changes neither its object nor its server.

        Proves: SM-09, ST-06.
        """
        cluster = await env.running_cluster()
        key = await env.running_machine(cluster)
        before = env.core.infra_machine(key), env.infrastructure.servers()
        for _ in range(3):
            await env.restart()
            await env.quiet()
        assert (env.core.infra_machine(key), env.infrastructure.servers()) == before

    @scenario
    async def test_conditions_of_others_are_kept(self, env: InfrastructureEnvironment) -> None:
        """Conditions that another controller wrote are kept in the status.

        Proves: ST-10.
        """
        cluster = env.core.add_cluster()
        key = env.core.add_machine(cluster)
        if not env.has_conditions(env.core.infra_machine(key)):
            return
        foreign = {
            "type": "Foreign",
            "status": "True",
            "reason": "SomebodyElse",
            "message": "another controller wrote it",
            "lastTransitionTime": "2030-01-01T00:00:00Z",
        }
        kind = env.machine_kind.resource.kind
        await env.quiet()
        env.api.change(kind, key, {"status": {"conditions": [foreign]}})
        env.core.infrastructure_is_ready(cluster)
        await env.eventually("it is there", lambda: env.has_machine(key))
        assert foreign in env.core.infra_machine(key)["status"]["conditions"]


def check_requests(env: InfrastructureEnvironment, key: NamespacedName) -> list[str]:
    """Return the write requests for a machine; fail the test if there are more than the limit."""
    kind, limit = env.machine_kind.resource, limits().machine_requests
    written = env.api.written(kind.kind, key)
    has_account = read_recorded(env.core.infra_machine(key), kind.group) is not None
    assert len(written) <= limit + has_account, (
        f"{len(written)} requests wrote a machine, more than machine_requests={limit}: {written}\n"
        f"{limits().hint('machine_requests')}"
    )
    return written


class TestTerminatedMachines(InfrastructureConformance):
    """Servers that disappear; requires a test double with the method ``remove_server``."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[InfrastructureCase]:
        """Return a case per pair of kinds and core version, or none without ``remove_server``."""
        if not hasattr(provider.infrastructure, "remove_server"):
            return []
        return super().cases(provider)

    @scenario
    async def test_a_server_that_disappears_is_not_created_again(
        self, env: InfrastructureEnvironment
    ) -> None:
        """A machine whose server disappears stays provisioned, and gets no other server.

        Core replaces the Machine: another server would run with old bootstrap data.

        Proves: IM-01, IM-03, IM-10.
        """
        cluster = await env.running_cluster()
        key = await env.running_machine(cluster)
        provider_id = env.core.infra_machine(key)["spec"]["providerID"]
        _remove_servers(env)
        await env.restart()
        await env.eventually(
            "Ready is False", lambda: env.shows(env.core.infra_machine(key), "Ready", "False")
        )
        await env.quiet()
        await env.restart()
        await env.quiet()

        obj = env.core.infra_machine(key)
        assert env.infrastructure.servers() == [], "the server was created a second time"
        assert obj["spec"]["providerID"] == provider_id
        assert env.core.provisioned(obj)
        _, reason = condition(obj, "Ready")
        assert reason not in ("InternalError", "InvalidResult", "ProviderIDChanged")

    @scenario
    async def test_servers_that_disappear_together_are_not_created_again(
        self, env: InfrastructureEnvironment
    ) -> None:
        """A cluster whose servers all disappear stays provisioned, and gets no new servers.

        An outage of the infrastructure may be the cause, so the machines are not all given up at
        once.

        Proves: IM-01, IM-03.
        """
        cluster = await env.running_cluster()
        keys = [await env.running_machine(cluster, name) for name in ("m1", "m2", "m3")]
        _remove_servers(env)
        await env.restart()
        await env.eventually(
            "the machines are reported",
            lambda: not any(_is_ready(env, key) for key in keys),
        )
        await env.quiet()
        assert env.infrastructure.servers() == [], "servers were created a second time"
        for key in keys:
            obj = env.core.infra_machine(key)
            assert env.core.provisioned(obj)
            # Author code that raises an error instead of returning Terminated is not held.
            assert condition(obj, "Ready")[1] not in ("InternalError", "ProviderIDChanged")

    @scenario
    async def test_a_machine_without_a_server_can_be_replaced(
        self, env: InfrastructureEnvironment
    ) -> None:
        """A machine whose server disappeared can be deleted, and a new one gets its own server.

        Proves: IM-25.
        """
        cluster = await env.running_cluster()
        key = await env.running_machine(cluster)
        provider_id = env.core.infra_machine(key)["spec"]["providerID"]
        _remove_servers(env)
        env.api.remove(env.machine_kind.resource.kind, key)
        await env.eventually("it is deleted", lambda: env.is_gone(env.machine_kind, key))
        assert env.infrastructure.servers() == []

        replacement = await env.running_machine(cluster, "m2")
        assert env.core.infra_machine(replacement)["spec"]["providerID"] != provider_id
        assert len(env.infrastructure.servers()) == 1


def _is_ready(env: InfrastructureEnvironment, key: NamespacedName) -> bool:
    return condition(env.core.infra_machine(key), "Ready")[1] == "Ready"


def _remove_servers(env: InfrastructureEnvironment) -> None:
    assert isinstance(env.infrastructure, RemovesServers)
    for server in env.infrastructure.servers():
        env.infrastructure.remove_server(server)
