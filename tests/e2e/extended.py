"""A provider of infrastructure with a runtime extension and an add-on beside it."""

from __future__ import annotations

from capsmith.clusters.processes.cluster import Base
from capsmith.clusters.processes.kube import JSON, ApiError
from capsmith.clusters.processes.servers import ApiServer
from tests.e2e.harness.report import Report
from tests.e2e.provider import build_with
from tests.e2e.releases import NEWEST
from tests.e2e.scenario import Scenario
from tests.e2e.stack import Combination, Stack

EXTENDED = (
    Combination(
        NEWEST,
        "v1beta2",
        "homelab",
        f"{NEWEST}-extended",
        gates="RuntimeSDK=true,InPlaceUpdates=true",
    ),
)
"""With the gates on by which core calls extensions."""
ADDED = "extension"
ADDON_GROUP = "addons.cluster.x-k8s.io"


def extended_stack(
    base: Base, workload: ApiServer, combination: Combination, report: Report
) -> Stack:
    """Create the stack for one combination, without starting it."""
    folder = base.folder / str(combination)
    with report.phase(str(combination), "build the provider"):
        provider = build_with(combination.example, combination.contract, folder, ADDED)
    return Stack(base, workload, combination, provider, report)


def addon_kind(scenario: Scenario) -> tuple[str, str]:
    """Return the API version and kind of the add-on."""
    (crd,) = scenario.stack.provider.part("addon").crds
    spec = crd["spec"]
    stored = next(version["name"] for version in spec["versions"] if version["storage"])
    return f"{spec['group']}/{stored}", spec["names"]["kind"]


def addon(scenario: Scenario, name: str, selector: JSON, message: str = "hello") -> JSON:
    """Return an add-on of the example's kind."""
    api_version, kind = addon_kind(scenario)
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": scenario.namespace},
        "spec": {"message": message, "clusterSelector": selector},
    }


def images(scenario: Scenario) -> dict[str, str]:
    """Return each Machine's infrastructure image; Machines without infrastructure are left out."""
    found = {}
    for machine in scenario.machines():
        infrastructure = _find_infrastructure(scenario, machine)
        if infrastructure is not None:
            found[machine["metadata"]["name"]] = infrastructure["spec"]["image"]
    return found


def _find_infrastructure(scenario: Scenario, machine: JSON) -> JSON | None:
    try:
        return scenario.infrastructure_of(machine)
    except ApiError as error:
        if error.status == 404:
            return None
        raise
