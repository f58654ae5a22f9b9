"""One management cluster with a provider of infrastructure, machine pools and addresses."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final, NamedTuple

from capsmith.clusters.processes.cluster import Base
from capsmith.clusters.processes.component import ProviderRelease
from capsmith.clusters.processes.manager import ProviderManager
from capsmith.judge.running.contract import CoreObjects
from capsmith.judge.running.ipam_session import IpamObjects, IpamSession, select_ipam_objects
from capsmith.judge.running.model import Timing
from capsmith.judge.running.objects import TEMPLATE_NAME, ProviderObjects, select_provider_objects
from capsmith.judge.running.servers import Installation, ManagementServers, ManagerCommand
from capsmith.judge.running.session import Session
from tests.e2e.harness.cloud import VARIABLE
from tests.e2e.harness.provider import ProviderUnderTest
from tests.e2e.provider import described
from tests.e2e.releases import KUBERNETES, NEWEST
from tests.repositories import import_path

CONTRACT: Final = "v1beta2"
GOOD = "good"
"""The namespace of the manager without a fault."""
_ROLES = {
    "HomelabCluster": "InfraCluster",
    "HomelabMachine": "InfraMachine",
    "HomelabMachineTemplate": "InfraMachineTemplate",
    "HomelabMachinePool": "InfraMachinePool",
    "HomelabNodePool": "InfraMachinePool",
    "HomelabIPPool": "IPPool",
}
_POOL_FLAVORS = ("machinepool", "machinepool-homelabnodepool")
# A violation that is a missing state costs the whole patience, so it is short for that state.
_SHORT = 5.0
_ROOT = Path(__file__).parents[2]


class Violation(NamedTuple):
    """A check that fails, the rule that it names, and a part of what is reported."""

    check: str
    rule: str
    message: str


class Expected(NamedTuple):
    """What a fault leads to."""

    check: str
    rule: str
    message: str
    """A part of what is reported."""
    other_checks: tuple[str, ...] = ()
    """Those that drive the objects into the state in which the fault shows."""
    also: tuple[Violation, ...] = ()
    """Further checks that fail."""
    missing: str = ""
    """The object whose expected state never comes, if that is the violation."""
    missing_condition: str = ""
    """The type of the condition that no object ever has, if that is the violation."""
    keeps_objects: bool = False
    """Whether some objects are deleted only when their finalizers are removed by force."""


class Site:
    """One management cluster with the installed release, and managers on demand."""

    def __init__(self, provider: ProviderUnderTest, base: Base, folder: Path) -> None:
        self._provider = provider
        self._folder = folder
        release = ProviderRelease(provider.out, provider.version)
        self._component = release.component("infrastructure")
        command = (sys.executable, "-m", provider.package)
        installed = Installation(
            (release,),
            (ManagerCommand(self._component, command),),
            self._environment(GOOD),
            (f"--namespace={GOOD}",),
            {},
            provider.prerequisites,
        )
        self.servers = ManagementServers(base, NEWEST, installed, folder)
        self.objects: ProviderObjects
        self.pools: IpamObjects

    @property
    def release(self) -> Path:
        return self._provider.out

    def start(self) -> None:
        self.servers.start()
        management = self.servers.first.management
        options = {
            "infrastructure": self._component.name,
            "kubernetes-version": KUBERNETES,
            "control-plane-machine-count": 1,
            "worker-machine-count": 1,
            "target-namespace": "default",
        }
        flavors = [{}, *({"flavor": each} for each in _POOL_FLAVORS)]
        documents = [
            each
            for flavor in flavors
            for each in self.servers.clusterctl.generate(
                management.kubeconfig, TEMPLATE_NAME, options | flavor, {}
            )
        ]
        self.objects = select_provider_objects(documents, _ROLES)
        self.pools = select_ipam_objects([], self._component.crds, _ROLES)

    def manager(self, name: str, *command: str) -> ProviderManager:
        argv = [sys.executable, *command, self._provider.package]
        return ProviderManager(
            argv,
            self._component,
            self.servers.first.management,
            self._environment(name),
            [f"--namespace={name}"],
            name,
        )

    def _environment(self, name: str) -> dict[str, str]:
        return {
            "PYTHONPATH": f"{import_path(self._provider.repository)}:{_ROOT}",
            VARIABLE: str(self.cloud(name)),
        }

    def cloud(self, name: str) -> Path:
        return self._folder / f"cloud-{name}"

    def session(
        self, name: str, manager: ProviderManager, expected: Expected | None = None
    ) -> Session:
        management = self.servers.first.management
        keeps_objects = expected is not None and (expected.missing or expected.keeps_objects)
        session = ImpatientSession(
            client=management.client,
            core=CoreObjects(CONTRACT, name, KUBERNETES),
            objects=self.objects,
            contract=CONTRACT,
            timing=Timing(cleanup=_SHORT) if keeps_objects else Timing(),
            manager=manager,
            kubeconfig=management.apiserver.kubeconfig_text,
        )
        session.expected = expected
        return session

    def ipam_session(self, name: str, manager: ProviderManager) -> IpamSession:
        management = self.servers.first.management
        core = CoreObjects(CONTRACT, name, KUBERNETES)
        timing = Timing()
        return IpamSession(management.client, core, CONTRACT, timing, self.pools, manager=manager)


class ImpatientSession(Session):
    """A session that soon gives up on the one state that a fault prevents."""

    expected: Expected | None = None

    def patience(self, name: str, what: str) -> float:
        if self.expected is None:
            return super().patience(name, what)
        if self.expected.missing_condition:
            awaited = what.startswith(f"condition {self.expected.missing_condition} of ")
        else:
            awaited = name == self.expected.missing and self.expected.message in what
        return _SHORT if awaited else super().patience(name, what)


def homelab() -> dict[str, Any]:
    """Return the description of homelab, with both types of machine pools and with addresses."""
    spec = described("homelab", CONTRACT)
    machine = spec["infrastructure"]["HomelabMachine"]["spec"]
    shared = {name: machine[name] for name in ("cpus", "memoryMiB")}
    spec["infrastructure"]["HomelabMachinePool"] = {
        "implements": "InfraMachinePool",
        "spec": shared,
    }
    spec["infrastructure"]["HomelabNodePool"] = {
        "implements": "InfraMachinePool",
        "features": {"machines": True},
        "machineKind": "HomelabMachine",
        "spec": shared,
    }
    spec["ipam"] = {"HomelabIPPool": {"implements": "IPPool"}}
    return {**spec, "components": {"infrastructure": ["infrastructure", "ipam"]}}
