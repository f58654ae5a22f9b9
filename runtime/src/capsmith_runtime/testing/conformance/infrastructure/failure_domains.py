"""Machines are created in the failure domains that their Machines require."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from capsmith_runtime.contract import metadata
from capsmith_runtime.kube.client import JSON
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.infrastructure.base import (
    InfrastructureCase,
    InfrastructureConformance,
)
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from capsmith_runtime.testing.provider import LocatesServers, ProviderUnderTest


class TestFailureDomains(InfrastructureConformance):
    """Machines in the failure domains that the infrastructure cluster reports.

    The object of a machine must report its failure domain if its kind has that feature.  If the
    test double has the method ``failure_domains``, the server itself must be in that domain.
    """

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[InfrastructureCase]:
        """Return the cases in which the machine or the test double reports failure domains."""
        has_places = hasattr(provider.infrastructure, "failure_domains")
        return [
            case
            for case in super().cases(provider)
            if "failureDomains" in case.cluster_kind.features
            and (has_places or "failureDomain" in case.machine_kind.features)
        ]

    @scenario
    async def test_machines_are_in_the_failure_domains_of_their_machines(
        self, env: InfrastructureEnvironment
    ) -> None:
        """Each machine is created in its Machine's failure domain, and reports where it is.

        Proves: IM-05, IM-06.
        """
        cluster = await env.running_cluster()
        domains = env.core.failure_domains(cluster)
        if not domains:
            pytest.skip("the infrastructure cluster reports no failure domains")
        # Two machines in the last domain first: code that ignores the required domain may use the
        # domains in turn, or always the first or the last.
        for number, domain in enumerate((domains[-1], domains[-1], domains[0])):
            before = set(env.infrastructure.servers())
            key = await env.running_machine(cluster, f"m{number}", failure_domain=domain)
            (server,) = set(env.infrastructure.servers()) - before
            check_server(env.infrastructure, server, domain)
            check_report(env, env.core.infra_machine(key), domain)


def check_server(infrastructure: object, server: str, domain: str) -> None:
    """Fail if the test double reports that a server is not in the required failure domain."""
    if isinstance(infrastructure, LocatesServers):
        actual = infrastructure.failure_domains().get(server)
        assert actual == domain, (
            f"server {server} is in failure domain {actual}, but its Machine requires {domain}: "
            "create it in the scope's failure_domain"
        )


def check_report(env: InfrastructureEnvironment, obj: JSON, domain: str) -> None:
    """Fail if a machine, whose kind has the feature, does not report the required domain."""
    # Contract v1beta1 has the field in the spec (IM-07).
    path = ("spec" if env.contract == "v1beta1" else "status", "failureDomain")
    if "failureDomain" in env.machine_kind.features and env.has_field(obj, *path):
        reported = metadata.text(obj, *path) or None
        assert reported == domain, (
            f"{'.'.join(path)} is {reported}, but the Machine requires {domain}: create the server "
            "in the scope's failure_domain, and return its domain in InfraMachineState"
        )
