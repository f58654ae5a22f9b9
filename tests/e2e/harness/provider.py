"""The provider under test: its repository, its release artefacts, and its running controllers."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from capsmith.clusters.processes.cluster import ManagementCluster
from capsmith.clusters.processes.component import ReleaseComponent, find_component_types
from capsmith.clusters.processes.errors import ProcessError
from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.kubeconfig import render_token_kubeconfig, request_token
from capsmith.clusters.processes.manager import Launch, read_launch
from capsmith.clusters.processes.pki import Pki
from capsmith.clusters.processes.process import Process, fetch_text, free_port, probe_http
from capsmith.clusters.processes.repository import (
    ClusterctlRepository,
    dump,
    load,
    localise_webhooks,
)
from tests.repositories import import_path

from .cloud import FAULTS_VARIABLE, VARIABLE, SimulatedCloud
from .contract import ContractVersion
from .hooks import ConversionServing, HookServing
from .manager_log import bad_ends, complaints

_DIAGNOSTICS = "--diagnostics-address"
_CERTIFICATES = "--diagnostics-cert-dir"
_HEALTH = "--health-addr"
_CALLS = re.compile(r"^hooks_in_flight\{.*\} (\S+)$", re.MULTILINE)

Rewrite = Callable[[list[JSON]], list[JSON]]


@dataclass(frozen=True)
class ProviderUnderTest:
    """A repository of providers, as described by its release artefacts."""

    contract: ContractVersion
    repository: Path
    package: str
    version: str
    machine_change: JSON
    """Fields of a machine template's spec which, when changed, must roll the machines."""
    variables: dict[str, str] = field(default_factory=dict)
    """What its components and cluster templates want beyond the common variables."""
    flags: tuple[str, ...] = ()
    """Flags of the controllers beyond what their Deployment says."""

    @property
    def out(self) -> Path:
        """Return the folder of the release artefacts."""
        return self.repository / "out"

    @cached_property
    def parts(self) -> tuple[ReleaseComponent, ...]:
        """Return what clusterctl installs from the repository, infrastructure first."""
        return tuple(ReleaseComponent(self.out, type) for type in find_component_types(self.out))

    def has(self, type: str) -> bool:
        """Return whether the repository has a provider of a type such as ``control-plane``."""
        return any(part.type == type for part in self.parts)

    def part(self, type: str) -> ReleaseComponent:
        """Return the provider of a type.

        Raises LookupError if there is none.
        """
        for part in self.parts:
            if part.type == type:
                return part
        raise LookupError(f"{self.out} has no {type} provider")

    @property
    def name(self) -> str:
        """Return the name for clusterctl, the same for all types."""
        return self.parts[0].name

    @property
    def groups(self) -> set[str]:
        """Return the API groups of the provider's kinds."""
        return {crd["spec"]["group"] for crd in self.crds}

    @property
    def prerequisites(self) -> list[JSON]:
        """Return what a user applies once: sample identities for all namespaces."""
        crds = self.part("infrastructure").crds if self.has("infrastructure") else []
        shared = {crd["spec"]["names"]["kind"] for crd in crds if not _namespaced(crd)}
        samples = sorted((self.repository / "config" / "samples").glob("*.yaml"))
        files = [load(path.read_text()) for path in samples]
        wanted = [file for file in files if any(each.get("kind") in shared for each in file)]
        found = [each for file in wanted for each in file]
        # The samples admit the namespace default; clusters of the tests are in others.
        for identity in (each for each in found if "allowedNamespaces" in each.get("spec", {})):
            identity["spec"]["allowedNamespaces"] = {}
        return found

    @property
    def namespace(self) -> str:
        """Return the namespace of the first manager."""
        return self.parts[0].namespace

    @property
    def label(self) -> str:
        """Return the field manager of the first provider's writes."""
        return self.parts[0].label

    @property
    def concurrency_variable(self) -> str:
        """Return clusterctl's variable for the flag --concurrency."""
        return self.parts[0].concurrency_variable

    @property
    def namespaced_crds(self) -> list[JSON]:
        """Return the CRDs of kinds whose objects belong to a cluster."""
        return [crd for crd in self.crds if _namespaced(crd)]

    @property
    def crds(self) -> list[JSON]:
        """Return the CRDs of all parts."""
        return [crd for part in self.parts for crd in part.crds]

    @property
    def bootstrap_kind(self) -> tuple[str, str] | None:
        """Return API version and kind of the bootstrap configurations; None if there are none."""
        for crd in self.part("bootstrap").crds if self.has("bootstrap") else []:
            spec = crd["spec"]
            if not spec["names"]["kind"].endswith("Template"):
                stored = next(each["name"] for each in spec["versions"] if each["storage"])
                return f"{spec['group']}/{stored}", spec["names"]["kind"]
        return None

    @property
    def components(self) -> list[JSON]:
        """Return everything that clusterctl installs for the first part."""
        return self.parts[0].components

    @property
    def topology_flavor(self) -> str:
        """Return the flavor whose Cluster refers to a ClusterClass."""
        for path in sorted(self.out.glob("cluster-template-*.yaml")):
            if "topology:" in path.read_text():
                return path.stem.removeprefix("cluster-template-")
        raise LookupError(f"no cluster template with a topology in {self.out}")

    def add_to(self, repository: ClusterctlRepository, rewrite: Rewrite, pki: Pki) -> None:
        """Add the release to a clusterctl repository, with its ClusterClasses rewritten.

        `generate cluster` looks up every template kind of a class in the management
        cluster, so classes must name installed kinds before clusterctl reads them. They
        contain no variables and can therefore be parsed and dumped; cluster templates
        cannot.
        """
        files = {path.name: path.read_text() for path in self.out.iterdir() if path.is_file()}
        for name, text in files.items():
            if name.startswith("clusterclass-"):
                files[name] = dump(rewrite(load(text)))
        for part in self.parts:
            if part.has_webhooks:
                turned = [
                    localise_webhooks(each, pki.ca_bundle, part.port_variable)
                    for each in part.components
                ]
                files[part.file] = dump(turned)
            repository.add(part.label, self.version, part.file, files)


class Controllers:
    """The provider's controllers, run against a management cluster as their Deployment specifies.

    Only what processes on one machine cannot share is different.
    """

    def __init__(
        self,
        provider: ProviderUnderTest,
        part: ReleaseComponent,
        management: ManagementCluster,
        cloud: SimulatedCloud,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._provider = provider
        self.part = part
        self._management = management
        self._cloud = cloud
        self._extra = dict(environment or {})
        self._name = f"{part.type}-{management.name}"
        self.hooks: HookServing | None = None
        if part.type == "runtime-extension":
            self.hooks = HookServing(management.folder / "hooks-certificate")
            self.hooks.renew()
        self.conversion: ConversionServing | None = None
        if part.converts:
            folder = management.folder / f"{part.type}-certificate"
            self.conversion = ConversionServing(folder, management.pki)
        self._probes: list[str] = []
        self.user = ""
        """The name of its ServiceAccount for the API server, once it was started."""
        self.process = self._process([], {})

    @property
    def variables(self) -> dict[str, str]:
        """Return clusterctl's variables for an installation with this process as its manager."""
        return {self.part.port_variable: str(self.conversion.port)} if self.conversion else {}

    def start(self) -> None:
        """Start the installed release with a token of its own ServiceAccount."""
        self.launch()
        self.wait_ready()

    def launch(self) -> None:
        """Start like `start`, without waiting: managers may have to wait for each other."""
        management, namespace = self._management, self.part.namespace
        launch = read_launch(management.client, namespace, self._name)
        self.user = f"system:serviceaccount:{namespace}:{launch.service_account}"
        management.wait_permitted(self.user, self.part.listed)
        port = free_port()
        self._probes = [f"http://127.0.0.1:{port}{x}" for x in (launch.readiness, launch.liveness)]
        self.process = self._process(self._arguments(launch, port), self._environment(launch))
        self.process.start()

    def wait_ready(self) -> None:
        """Wait until the probes succeed."""
        for probe in self._probes:
            self.process.wait_ready(probe_http(probe))

    def wait_leading(self) -> None:
        """Wait until the manager holds the lease; until then, its inaction proves nothing."""
        self.process.wait_ready(lambda: "\nleader 1.0\n" in self._metrics())

    def wait_calling(self, calls: int) -> None:
        """Wait until this many calls by the author's reconcilers are running."""

        def calling() -> bool:
            running = [float(each) for each in _CALLS.findall(self._metrics())]
            return sum(running) >= calls

        self.process.wait_ready(calling)

    def complaints(self) -> list[str]:
        """Return log lines about refusals and bugs, which a working provider never writes."""
        return complaints(self._log())

    def _metrics(self) -> str:
        return fetch_text(self._probes[0].rpartition("/")[0] + "/metrics").decode()

    def kill(self) -> None:
        self.process.kill()

    def stop(self) -> None:
        """Stop the manager.

        Raises ProcessError if it has ever ended for a reason that it caused itself.
        """
        self.process.stop()
        broken = bad_ends(self._log())
        if broken:
            raise ProcessError(f"{self._name} ended by itself:\n" + "\n".join(broken))

    def _log(self) -> str:
        log = self.process.log
        return log.read_text(errors="replace") if log.exists() else ""

    def _process(self, arguments: list[str], env: dict[str, str]) -> Process:
        argv = [sys.executable, "-m", self._provider.package, *arguments]
        log = self._management.folder / f"{self._name}.log"
        return Process(self._name, argv, log, env, kept=True)

    def _arguments(self, launch: Launch, port: int) -> list[str]:
        address = [each for each in launch.args if each.startswith(_HEALTH)]
        assert address == [f"{_HEALTH}=:{launch.port}"], f"probes find nothing at {address}"
        serving = [each.flags() for each in (self.hooks, self.conversion) if each is not None]
        hooks = [flag for flags in serving for flag in flags]
        # Probes and metrics at one address: an empty health address is that of the diagnostics.
        local = [f"{_DIAGNOSTICS}=127.0.0.1:{port}", f"{_HEALTH}=", f"{_CERTIFICATES}="]
        return [*launch.args, *local, *self._provider.flags, *hooks]

    def _environment(self, launch: Launch) -> dict[str, str]:
        """Nothing of the tests' own environment but the search path gets through."""
        management = self._management
        token = request_token(management.client, self.part.namespace, launch.service_account)
        kubeconfig = management.folder / f"{self._name}.kubeconfig"
        kubeconfig.write_text(
            render_token_kubeconfig(management.apiserver.url, management.pki.ca, token)
        )
        return {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": import_path(self._provider.repository),
            "KUBECONFIG": str(kubeconfig),
            VARIABLE: str(self._cloud.folder),
            FAULTS_VARIABLE: f"@{self._cloud.faults}",
            "CAPSMITH_SIMULATED_USER_DATA": "true",
            **self._extra,
            **launch.env,
        }


def _namespaced(crd: JSON) -> bool:
    return bool(crd["spec"]["scope"] == "Namespaced")
