"""Install one provider in a lab with clusterctl, and run its managers as processes."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from capsmith.clusters.lab.connection import LabConnection
from capsmith.clusters.lab.errors import LabError, keep_tail
from capsmith.clusters.lab.provider import ProviderRepository
from capsmith.clusters.lab.simulated.external_etcd import EtcdTemplates
from capsmith.clusters.lab.state import ComponentState, write_text
from capsmith.clusters.lab.supervision import SupervisedProcess, forget_kill
from capsmith.clusters.processes.component import ProviderRelease
from capsmith.clusters.processes.component import ReleaseComponent as ReleaseComponent
from capsmith.clusters.processes.manager import ProviderManager
from capsmith.clusters.processes.process import Process
from capsmith.errors import CapsmithError

Progress = Callable[[str], None]

_TAIL_LINES = 20
_PATCH = re.compile(r"(v\d+\.\d+)\.(\d+)")
INVENTORY = "clusterctl.cluster.x-k8s.io/v1alpha3"
"""API version of the kind in which clusterctl records what is installed."""
_CLOUD = "CAPSMITH_SIMULATED_CLOUD_DIR"
_FAULTS = "CAPSMITH_SIMULATED_FAULTS"
_FLAGS = ("--v=4",)
"""Debug records, from which the page of the lab shows the author's calls."""


class InstalledProvider:
    """A provider that clusterctl installs in a lab, and whose managers run as local processes.

    :class:`.InstalledPods` is the counterpart for a lab with a node.
    """

    def __init__(
        self,
        provider: ProviderRepository,
        lab: LabConnection,
        progress: Progress,
        label: str = "manager",
    ) -> None:
        """Define a provider's managers and release, without installing or starting anything.

        The names of the manager processes start with ``label``; ``progress`` receives messages
        about the current step.
        """
        self._provider = provider
        self._lab = lab
        self._progress = progress
        self._label = label
        self._version = ""
        self._managers: dict[str, ProviderManager] = {}
        self._is_starting = False
        self._supervised: dict[str, SupervisedProcess] = {}

    @property
    def version(self) -> str:
        """Return the installed version, or an empty string before the first installation."""
        return self._version

    @property
    def components(self) -> tuple[ComponentState, ...]:
        """Return the state of each manager, which `capsmith lab status` prints."""
        return tuple(self._describe(type) for type in self._managers)

    @property
    def is_installed(self) -> bool:
        """Return whether a release is installed. The managers are known only then."""
        return bool(self._managers)

    def install(self, changed: Callable[[], None]) -> None:
        """Build a release and install it with clusterctl, unless it is already installed.

        A release with webhooks is always rebuilt and reinstalled.  ``changed`` is called when
        :attr:`components` change.
        """
        record = self._lab.folder / "installed.json"
        installed = read_record(record)
        digest, version = self._provider.released_digest(), installed.get("version", "")
        out = self._lab.folder / "release"
        release = ProviderRelease(out, version)
        # The webhook port is part of the installation, and each run uses different ports.
        has_webhooks = any(each.has_webhooks for each in release.components)
        is_current = installed.get("digest") == digest and not has_webhooks
        if not is_current:
            version = choose_next_version(self._provider.first_version(), version)
            self._progress(f"building release {version}")
            release = self._provider.release(version, out)
            templates = EtcdTemplates(out, self._lab.state.etcd, self._lab.pki)
            release.add_to(self._lab.repository, self._lab.pki.ca_bundle, templates.change)
        self._version = version
        if any(each.has_webhooks for each in release.components):
            self._require_own_servers()
        self._managers = {each.type: self._manager(each) for each in release.components}
        self._is_starting = True
        changed()
        if not is_current:
            self._clusterctl(release)
            # Recorded only after clusterctl succeeded, because a recorded release is not installed
            # again.
            write_text(record, json.dumps({"digest": digest, "version": version}))

    def start(self, changed: Callable[[], None]) -> None:
        """Start the managers.

        ``changed`` is called when :attr:`components` change.  Raises CapsmithError if a manager
        does not become ready.
        """
        self._supervised, self._is_starting = {}, True
        changed()
        self._provider.check_manager()
        # The page offers its buttons while this folder exists. The simulated cloud creates it
        # again, a real cloud does not. A provider without infrastructure must leave it alone,
        # because the managers of the simulated infrastructure are already using it.
        if "infrastructure" in self._managers:
            with suppress(OSError):
                (self._lab.lab.cloud / "servers").rmdir()
        for type, manager in self._managers.items():
            self._progress(f"starting the manager ({type})")
            log = self._find_log(type)
            # Logs are appended to, so the report of a crash must skip the output of earlier runs.
            before = log.stat().st_size if log.exists() else 0
            try:
                manager.launch()
                changed()
                manager.wait_ready()
            except CapsmithError as error:
                raise _crashed(error, log, before) from error
            self._supervise(type, manager.process)
            changed()

    def look(self) -> None:
        """Restart managers that have exited, as a Deployment would."""
        for each in self._supervised.values():
            each.look(time.monotonic(), self._progress)

    def list_faults(self) -> tuple[str, ...]:
        """Return the names of the faults that the provider's simulated cloud can inject."""
        return self._provider.list_faults()

    def code_stamp(self) -> frozenset[tuple[str, int, int]]:
        """Return a value that changes whenever the managers' code changes."""
        return self._provider.code_stamp()

    def stop(self) -> None:
        """Stop the managers gracefully."""
        with ExitStack() as ends:
            for manager in self._managers.values():
                ends.callback(manager.stop)
        self._supervised, self._is_starting = {}, False

    def _supervise(self, type: str, process: Process) -> None:
        kills = self._lab.lab.kills
        # Another process may have had this process id.
        forget_kill(kills, process.pid)
        self._supervised[type] = SupervisedProcess(self._name(type), process, kills=kills)

    def _describe(self, type: str) -> ComponentState:
        supervised, log = self._supervised.get(type), str(self._find_log(type))
        if supervised is not None:
            return supervised.state()
        if self._is_starting:
            return ComponentState.starting(self._name(type), self._managers[type].pid, log)
        reason = "the provider is not running"
        return ComponentState(self._name(type), "stopped", log=log, reason=reason)

    def _name(self, type: str) -> str:
        return f"{self._label}-{type}"

    def _find_log(self, type: str) -> Path:
        return self._lab.folder / f"{self._name(type)}.log"

    def _require_own_servers(self) -> None:
        """Raise LabError in an existing cluster, whose API server reaches no webhooks here."""
        if not self._lab.state.simulated:
            message = "the API server of the cluster cannot call the provider's webhooks here"
            hint = "Run capsmith lab up without --kubeconfig and --kind."
            raise LabError("lab-webhooks", message, hint=hint)

    def _manager(self, component: ReleaseComponent) -> ProviderManager:
        # The user's KUBECONFIG would take precedence over the lab's.
        environment = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
        environment["PYTHONPATH"] = self._provider.import_path
        environment.setdefault(_CLOUD, str(self._lab.lab.cloud))
        environment.setdefault(_FAULTS, f"@{self._lab.lab.faults}")
        argv = [self._provider.python, "-m", self._provider.package]
        name = self._name(component.type)
        return ProviderManager(
            argv, component, self._lab, environment, _FLAGS, name=name, kept=False
        )

    def _clusterctl(self, release: ProviderRelease) -> None:
        kubeconfig, clusterctl = self._lab.kubeconfig, self._lab.clusterctl
        parts = release.components
        ports = {k: v for each in self._managers.values() for k, v in each.variables.items()}
        found = self._lab.client.list(INVENTORY, "Provider", parts[0].namespace)
        if any(each["metadata"]["name"] == parts[0].label for each in found):
            self._progress(f"replacing the installed release with {self._version}")
            targets = {each.type: f"{each.name}:{self._version}" for each in parts}
            clusterctl.upgrade(kubeconfig, targets, ports)
        else:
            self._progress(f"installing {self._version} with clusterctl init")
            self._lab.wait_clusterctl()
            clusterctl.init_more(kubeconfig, parts[0].name, ports, *(each.type for each in parts))
        self._lab.wait_established()
        if self._lab.state.simulated:
            self._lab.wait_core_permitted()
        else:
            self._without_pods(release)

    def _without_pods(self, release: ProviderRelease) -> None:
        """Prevent kubelets from starting the Deployments: the managers run on this computer."""
        for part in release.components:
            for each in self._lab.client.list("apps/v1", "Deployment", part.namespace):
                self._lab.client.patch(each, {"spec": {"replicas": 0}})


def choose_next_version(first: str, installed: str) -> str:
    """Return the patch release after ``installed``.

    Return ``first`` if ``installed`` belongs to another release series, or is not a release.
    """
    series, match = _PATCH.fullmatch(first), _PATCH.fullmatch(installed)
    if series is None or match is None or match[1] != series[1]:
        return first
    return f"{match[1]}.{int(match[2]) + 1}"


def _crashed(error: CapsmithError, log: Path, before: int) -> LabError:
    """Return the error with the manager's log output since its start, at offset ``before``."""
    hint = "Correct the code: capsmith lab run restarts it when a file below src/ changes."
    text = log.read_bytes()[before:].decode(errors="replace") if log.exists() else str(error)
    message = f"the manager does not start\n{keep_tail(text, _TAIL_LINES)}".rstrip()
    return LabError("lab-manager-crashed", message, hint=hint)


def read_record(path: Path) -> dict[str, str]:
    """Return the last installed release's digest and version; empty if there is none."""
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}
