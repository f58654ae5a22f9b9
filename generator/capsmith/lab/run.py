"""Run the provider of a folder in a lab: release, install, start its managers, look for changes."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPException
from pathlib import Path
from types import FrameType

from capsmith.errors import CapsmithError, Refused
from capsmith.lab.attached import Attached, attached
from capsmith.lab.errors import LabError, from_api, from_os, from_process
from capsmith.lab.place import LabFolder, acquire
from capsmith.lab.provider import ProviderRepository
from capsmith.lab.state import Component, RunState, write, write_text
from capsmith.lab.supervision import Supervised
from capsmith.management.component import Component as ReleaseComponent
from capsmith.management.kube import ApiError
from capsmith.management.manager import ProviderManager
from capsmith.management.release import ProviderRelease

Progress = Callable[[str], None]

_LOOK_SECONDS = 0.4
_TAIL_LINES = 20
_PATCH = re.compile(r"(v\d+\.\d+)\.(\d+)")
_INVENTORY = "clusterctl.cluster.x-k8s.io/v1alpha3"
_CLOUD = "CAPSMITH_SIMULATED_CLOUD_DIR"


class Run:
    """The managers of one provider, and what of it is installed."""

    def __init__(self, provider: ProviderRepository, lab: Attached, progress: Progress) -> None:
        self._provider = provider
        self._lab = lab
        self._progress = progress
        self._version = ""
        self._managers: dict[str, ProviderManager] = {}
        self._supervised: dict[str, Supervised] = {}
        self._reported: RunState | None = None

    @property
    def folder(self) -> Path:
        """The folder of the lab."""
        return self._lab.lab.root

    @property
    def is_installed(self) -> bool:
        """Whether the managers are known."""
        return bool(self._managers)

    def install(self) -> None:
        """Release the repository and install it by clusterctl; an installed one is replaced."""
        record = self._lab.folder / "installed.json"
        installed = _record(record)
        digest, version = self._provider.released_digest(), installed.get("version", "")
        out = self._lab.folder / "release"
        release = ProviderRelease(out, version)
        # The port of a webhook is part of what is installed, and each run has others.
        has_webhooks = any(each.has_webhooks for each in release.components)
        is_current = installed.get("digest") == digest and not has_webhooks
        if not is_current:
            version = next_version(self._provider.first_version(), version)
            self._progress(f"making release {version}")
            release = self._provider.release(version, out)
            release.add_to(self._lab.repository, self._lab.pki.ca_bundle)
        self._version = version
        if any(each.has_webhooks for each in release.components):
            self._require_own_servers()
        self._managers = {each.type: self._manager(each) for each in release.components}
        if not is_current:
            self._clusterctl(release)
            write_text(record, json.dumps({"digest": digest, "version": version}))

    def start(self) -> None:
        """Start the managers; raises CapsmithError if one does not become ready."""
        self._supervised = {}
        self._provider.check_manager()
        for type, manager in self._managers.items():
            self._progress(f"starting the manager ({type})")
            log = self._lab.folder / f"manager-{type}.log"
            before = log.stat().st_size if log.exists() else 0
            try:
                manager.start()
            except CapsmithError as error:
                raise _crashed(error, log, before) from error
            self._supervised[type] = Supervised(f"manager-{type}", manager.process)
        self.say("running")

    def look(self) -> None:
        """Restart managers that have ended, as a Deployment does."""
        for each in self._supervised.values():
            each.look(time.monotonic(), self._progress)
        self.say("running")

    def stop(self) -> None:
        """End the managers cleanly."""
        with ExitStack() as ends:
            for manager in self._managers.values():
                ends.callback(manager.stop)
        self._supervised = {}

    def say(self, state: str, message: str = "") -> None:
        """Write the state of the run if it has changed."""
        components: tuple[Component, ...] = tuple(
            each.state() for each in self._supervised.values()
        )
        folder = str(self._provider.folder)
        current = RunState(os.getpid(), folder, self._version, state, components, message)
        if current != self._reported:
            write(self._lab.lab.run_state, current)
            self._reported = current

    def _require_own_servers(self) -> None:
        """Raise LabError in another cluster, whose API server reaches no webhook here."""
        if not self._lab.state.simulated:
            message = "the API server of the cluster cannot call the provider's webhooks here"
            hint = "Run capsmith lab up without --kubeconfig and --kind."
            raise LabError("lab-webhooks", message, hint=hint)

    def _manager(self, component: ReleaseComponent) -> ProviderManager:
        environment = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
        environment["PYTHONPATH"] = self._provider.import_path
        environment.setdefault(_CLOUD, str(self._lab.lab.cloud))
        argv = [self._provider.python, "-m", self._provider.package]
        return ProviderManager(
            argv, component, self._lab, environment, name=f"manager-{component.type}", kept=False
        )

    def _clusterctl(self, release: ProviderRelease) -> None:
        kubeconfig, clusterctl = self._lab.kubeconfig, self._lab.clusterctl
        parts = release.components
        ports = {k: v for each in self._managers.values() for k, v in each.variables.items()}
        found = self._lab.client.list(_INVENTORY, "Provider", parts[0].namespace)
        if any(each["metadata"]["name"] == parts[0].label for each in found):
            self._progress(f"replacing the installed release by {self._version}")
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
        """Keep a cluster with kubelets from starting the Deployments: the managers run here."""
        for part in release.components:
            for each in self._lab.client.list("apps/v1", "Deployment", part.namespace):
                self._lab.client.patch(each, {"spec": {"replicas": 0}})


def run(
    provider: ProviderRepository,
    lab: LabFolder,
    progress: Progress,
    failed: Callable[[CapsmithError], None],
) -> None:
    """Run a provider until a signal; ``failed`` gets what is wrong with it at the moment.

    Raises Refused while another run goes on, and LabError if the lab does not run.
    """
    with _ended_by_signals(), _only_one(lab), attached(lab) as connection:
        current = Run(provider, connection, progress)
        try:
            _watch(provider, lab, current, progress, failed)
        except OSError as error:
            raise from_os(error, lab.root) from error
        except KeyboardInterrupt:
            progress("ending the manager")
        finally:
            current.stop()
            lab.run_state.unlink(missing_ok=True)


def _watch(
    provider: ProviderRepository,
    lab: LabFolder,
    current: Run,
    progress: Progress,
    failed: Callable[[CapsmithError], None],
) -> None:
    """Look after the managers, and follow changes of files, as long as the lab runs."""
    code, released = provider.code_stamp(), provider.release_stamp()
    description = provider.description_stamp()
    is_broken = not _changed(current, failed, is_release=True)
    while lab.is_running:
        time.sleep(_LOOK_SECONDS)
        if not is_broken:
            current.look()
        new = provider.code_stamp(), provider.release_stamp(), provider.description_stamp()
        if new == (code, released, description):
            continue
        if new[2] != description:
            progress("provider.yaml has changed: run capsmith update, and it is installed")
        is_release = new[1] != released
        is_change = is_release or new[0] != code
        code, released, description = new
        if not is_change:
            continue
        progress("files have changed")
        is_broken = not _changed(current, failed, is_release=is_release)
    progress("the lab has ended")


def _changed(current: Run, failed: Callable[[CapsmithError], None], *, is_release: bool) -> bool:
    """Follow a change of files; return whether the managers run with it."""
    try:
        current.stop()
        current.say("starting")
        if is_release or not current.is_installed:
            current.install()
        current.start()
        return True
    except TimeoutError as error:
        wrong: CapsmithError = LabError("lab-timeout", str(error), hint="Run capsmith lab status.")
    except CapsmithError as error:
        wrong = from_process(error, current.folder)
    except (ApiError, LookupError, HTTPException) as error:
        wrong = from_api(error, "the API server refuses a request")
    current.stop()
    current.say("crashed", wrong.finding.message)
    failed(wrong)
    return False


def next_version(first: str, installed: str) -> str:
    """Return the version after the installed one in the series of ``first``."""
    series, match = _PATCH.fullmatch(first), _PATCH.fullmatch(installed)
    if series is None or match is None or match[1] != series[1]:
        return first
    return f"{match[1]}.{int(match[2]) + 1}"


def _crashed(error: CapsmithError, log: Path, before: int) -> LabError:
    """Return the error with what the manager has logged since its start."""
    hint = "Correct the code: capsmith lab run starts it again when a file below src/ changes."
    text = log.read_bytes()[before:].decode(errors="replace") if log.exists() else str(error)
    lines = text.rstrip().splitlines()[-_TAIL_LINES:]
    message = "\n".join(["the manager does not start", *lines])
    return LabError("lab-manager-crashed", message, hint=hint)


@contextmanager
def _only_one(lab: LabFolder) -> Iterator[None]:
    """Hold the lock of a run; raises Refused while another process holds it."""
    if not lab.root.is_dir():
        yield  # the connection says that there is no lab
        return
    lock = acquire(lab.run_lock)
    if lock is None:
        raise Refused(
            "lab-run-active",
            "a manager of this lab runs already",
            hint="End it with ctrl-C where it was started.",
        )
    try:
        yield
    finally:
        os.close(lock)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Take a SIGTERM as a ctrl-C: the manager ends cleanly."""

    def end(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    former = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)


def _record(path: Path) -> dict[str, str]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}
