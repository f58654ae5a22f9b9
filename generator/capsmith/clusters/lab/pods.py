"""Install one provider in a lab with a node, where its managers run as Pods.

The image and the release are built by the repository's own Dockerfile and `hack/release.py`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.client import HTTPException
from pathlib import Path

from capsmith.clusters.lab.connection import LabConnection
from capsmith.clusters.lab.errors import LabError
from capsmith.clusters.lab.installed import INVENTORY, Progress, choose_next_version, read_record
from capsmith.clusters.lab.provider import ProviderRepository
from capsmith.clusters.lab.simulated.external_etcd import EtcdTemplates
from capsmith.clusters.lab.state import STARTING, ComponentState, write_text
from capsmith.clusters.node.builder import find_builder
from capsmith.clusters.node.plan import NodePaths
from capsmith.clusters.node.shell import build_enter_command, import_images
from capsmith.clusters.processes.component import ProviderRelease, ReleaseComponent
from capsmith.clusters.processes.kube import JSON, ApiError

_CONTAINER = "manager"
_LOOK_SECONDS = 2.0


class InstalledPods:
    """A provider that clusterctl installs in a lab with a node, and whose managers run as Pods.

    :class:`.InstalledProvider` is the counterpart for a lab without a node.
    """

    def __init__(
        self,
        provider: ProviderRepository,
        lab: LabConnection,
        progress: Progress,
        label: str = "manager",
    ) -> None:
        """Define the release, without building or installing anything.

        The names of the managers in the lab's status start with ``label``; ``progress`` receives
        messages about the current step.
        """
        self._provider = provider
        self._lab = lab
        self._progress = progress
        self._label = label
        self._paths = NodePaths(Path(lab.state.node))
        self._record = lab.folder / "installed.json"
        self._release = ProviderRelease(lab.folder / "release", "")
        self._looked = 0.0
        self._components: tuple[ComponentState, ...] = ()

    @property
    def version(self) -> str:
        """Return the installed version, or an empty string before the first installation."""
        return self._release.version

    @property
    def components(self) -> tuple[ComponentState, ...]:
        """Return each Deployment's state, as last read by :meth:`look`."""
        return self._components

    @property
    def is_installed(self) -> bool:
        """Return whether the installed release was built from the current files."""
        return bool(self.version) and read_record(self._record).get("digest") == self._digest()

    def install(self, changed: Callable[[], None]) -> None:
        """Build and install an image and a release, unless they are already installed.

        ``changed`` is called when :attr:`components` change.
        """
        record, digest = read_record(self._record), self._digest()
        version, out = record.get("version", ""), self._release.folder
        if record.get("digest") == digest:
            self._release = ProviderRelease(out, version)
            return
        version = choose_next_version(self._provider.first_version(), version)
        self._progress(f"building release {version}")
        release = self._provider.release(version, out, has_own_image=True)
        self._components = tuple(map(ComponentState.starting, self._name_components(release)))
        changed()
        self._add_images(release)
        templates = EtcdTemplates(out, self._lab.state.etcd, self._lab.pki)
        release.add_to(self._lab.repository, "", templates.change)
        # A release whose Pods do not become ready has still been installed, so the next one needs
        # another version. But these files must not be recorded as installed.
        write_text(self._record, json.dumps({"version": version}))
        self._clusterctl(release)
        self._release = release
        write_text(self._record, json.dumps({"digest": digest, "version": version}))

    def start(self, changed: Callable[[], None]) -> None:
        """Read the Deployments' state. The kubelet starts the Pods.

        ``changed`` is called when :attr:`components` change.
        """
        self._looked = 0.0
        self.look()
        changed()

    def look(self) -> None:
        """Read the Deployments' state, at most once every two seconds.

        The state is unknown while the API server does not respond, for example after a restart.
        """
        now = time.monotonic()
        if now - self._looked < _LOOK_SECONDS:
            return
        self._looked = now
        try:
            self._components = tuple(self._states())
        except (ApiError, OSError, HTTPException, LookupError) as error:
            reason = f"the API server does not respond: {error}"
            self._components = tuple(
                replace(each, state="unknown", reason=reason) for each in self._known()
            )

    def list_faults(self) -> tuple[str, ...]:
        """Return an empty tuple: a manager in a Pod cannot read the lab's fault file."""
        return ()

    def code_stamp(self) -> frozenset[tuple[str, int, int]]:
        """Return a value that changes whenever the image's source files change."""
        return self._provider.image_stamp()

    def stop(self) -> None:
        """Do nothing to the Pods, which keep running until the lab is shut down."""
        # After a failed installation it is not known which Pods are running.
        self._components = tuple(each for each in self._components if each.state != STARTING)

    def _digest(self) -> str:
        return f"{self._provider.released_digest()}-{self._provider.image_digest()}"

    def _add_images(self, release: ProviderRelease) -> None:
        builder = find_builder()
        archive = self._lab.folder / "image.tar"
        for image in sorted(set(list_images(release))):
            self._progress(f"building the image {image} with {builder.name}")
            try:
                builder.build(self._provider.folder, image, archive)
                prefix = build_enter_command(self._paths)
                import_images(Path(self._lab.state.ctr), archive, prefix)
            finally:
                archive.unlink(missing_ok=True)
                builder.remove(image)

    def _clusterctl(self, release: ProviderRelease) -> None:
        kubeconfig, clusterctl = self._lab.kubeconfig, self._lab.clusterctl
        parts = release.components
        found = self._lab.client.list(INVENTORY, "Provider", parts[0].namespace)
        if any(each["metadata"]["name"] == parts[0].label for each in found):
            self._progress(f"replacing the installed release with {release.version}")
            targets = {each.type: f"{each.name}:{release.version}" for each in parts}
            clusterctl.upgrade(kubeconfig, targets, {}, is_awaited=True)
        else:
            self._progress(f"installing {release.version} with clusterctl init, as Pods")
            self._lab.wait_clusterctl()
            types = [each.type for each in parts]
            clusterctl.init_more(kubeconfig, parts[0].name, {}, *types, is_awaited=True)

    def _known(self) -> tuple[ComponentState, ...]:
        """Return the last states, or one for each component that has not been looked at."""
        names = self._name_components(self._release)
        return self._components or tuple(ComponentState(name, "unknown") for name in names)

    def _name_components(self, release: ProviderRelease) -> list[str]:
        return [f"{self._label}-{part.type}" for part in release.components]

    def _states(self) -> Iterator[ComponentState]:
        for part in self._release.components:
            for each in self._lab.client.list("apps/v1", "Deployment", part.namespace):
                yield self._state(part, each)

    def _state(self, part: ReleaseComponent, deployment: JSON) -> ComponentState:
        status, desired = deployment.get("status") or {}, deployment["spec"].get("replicas", 1)
        ready = int(status.get("readyReplicas") or 0)
        pods = self._lab.client.list("v1", "Pod", part.namespace)
        counts = [
            int(container.get("restartCount") or 0)
            for pod in pods
            for container in (pod.get("status") or {}).get("containerStatuses") or []
        ]
        is_ready = ready >= desired
        return ComponentState(
            name=f"{self._label}-{part.type}",
            state="running" if is_ready else "restarting",
            restarts=sum(counts),
            log=str(self._find_log(part.namespace)),
            reason="" if is_ready else f"{ready} of {desired} Pods are ready",
        )

    def _find_log(self, namespace: str) -> Path:
        """Return the path to the newest log of a manager's Pods."""
        logs = list((self._paths.logs / "pods").glob(f"{namespace}_*/{_CONTAINER}/*.log"))
        return max(logs, key=lambda path: path.stat().st_mtime, default=self._paths.logs)


def list_images(release: ProviderRelease) -> Iterator[str]:
    """Yield the managers' images in a release, with their tags."""
    for part in release.components:
        for deployment in part.of("Deployment"):
            for container in deployment["spec"]["template"]["spec"]["containers"]:
                if container["name"] == _CONTAINER:
                    yield str(container["image"])


def require_node(lab: LabConnection) -> None:
    """Raise LabError if the lab has no node to run Pods on."""
    if not lab.state.node:
        raise build_no_node_error(lab.name)


def build_no_node_error(lab: str) -> LabError:
    """Create the error for requesting Pods in a lab without a node."""
    message = f"the lab {lab} has no node on which Pods could run"
    hint = "Run capsmith lab down, then capsmith lab up --node; or leave out --pod."
    return LabError("lab-no-node", message, hint=hint)
