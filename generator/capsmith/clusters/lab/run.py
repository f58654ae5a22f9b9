"""Run a provider from its folder in a lab, and restart it when its files change."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPException
from types import FrameType

from capsmith.clusters.lab.connection import LabConnection, connect
from capsmith.clusters.lab.errors import (
    LabError,
    convert_api_error,
    convert_os_error,
    explain_process_error,
)
from capsmith.clusters.lab.folder import LabFolder, acquire
from capsmith.clusters.lab.installed import InstalledProvider, Progress
from capsmith.clusters.lab.pods import InstalledPods, require_node
from capsmith.clusters.lab.provider import ProviderRepository
from capsmith.clusters.lab.simulated.infrastructure import generate_infrastructure
from capsmith.clusters.lab.state import STARTING, RunState, write_state
from capsmith.clusters.processes.kube import ApiError
from capsmith.errors import CapsmithError, Refused

Failed = Callable[[CapsmithError], None]

_LOOK_SECONDS = 0.4
Installed = InstalledProvider | InstalledPods
"""A provider whose managers run as processes or as Pods."""

_INFRASTRUCTURE = "simulated"
"""Name of the folder, and prefix of the processes, of simulated infrastructure."""


class ProviderRun:
    """A provider in a lab, along with simulated infrastructure if the provider has none."""

    def __init__(
        self,
        provider: ProviderRepository,
        lab: LabFolder,
        installed: Installed,
        infrastructure: Installed | None,
    ) -> None:
        self._provider = provider
        self._lab = lab
        self._installed = installed
        self._infrastructure = infrastructure
        self._reported: RunState | None = None
        self._faults: tuple[str, ...] = ()

    def look(self) -> None:
        """Restart managers that have exited, and update the run's state."""
        for each in self._all():
            each.look()
        self._say("running")

    def code_stamp(self) -> frozenset[tuple[str, int, int]]:
        """Return a value that changes whenever changed files require restarting the managers."""
        return self._installed.code_stamp()

    def restart(self, failed: Failed, *, is_release: bool) -> bool:
        """Restart the managers, and return whether they are running.

        If ``is_release`` is true, a new release is installed first.  ``failed`` receives the error
        if the managers are not running.
        """
        try:
            self._installed.stop()
            self._say_starting()
            # Installed first, and only once, because the provider's templates refer to its kinds.
            if self._infrastructure is not None and not self._infrastructure.is_installed:
                self._infrastructure.install(self._say_starting)
                self._infrastructure.start(self._say_starting)
            if is_release or not self._installed.is_installed:
                self._installed.install(self._say_starting)
            self._installed.start(self._say_starting)
            # Read after each start, because `capsmith update` may have replaced the library.
            self._faults = (self._infrastructure or self._installed).list_faults()
            self._say("running")
            return True
        except TimeoutError as error:
            hint = "Run capsmith lab status."
            reason: CapsmithError = LabError("lab-timeout", str(error), hint=hint)
        except CapsmithError as error:
            reason = explain_process_error(error, self._lab.root)
        except (ApiError, LookupError, HTTPException) as error:
            reason = convert_api_error(error, "the API server refuses a request")
        self._installed.stop()
        self._say("crashed", reason.finding.message)
        failed(reason)
        return False

    def stop(self) -> None:
        """Stop the managers gracefully."""
        with ExitStack() as ends:
            for each in self._all():
                ends.callback(each.stop)
        self._lab.run_state.unlink(missing_ok=True)

    def _all(self) -> list[Installed]:
        return [each for each in (self._infrastructure, self._installed) if each is not None]

    def _say_starting(self) -> None:
        self._say(STARTING)

    def _say(self, state: str, message: str = "") -> None:
        """Write the state of the run if it has changed."""
        current = RunState(
            os.getpid(),
            str(self._provider.folder),
            self._installed.version,
            state,
            tuple(component for each in self._all() for component in each.components),
            message,
            self._faults,
        )
        if current != self._reported:
            write_state(self._lab.run_state, current)
            self._reported = current


def run(
    provider: ProviderRepository,
    lab: LabFolder,
    progress: Progress,
    failed: Failed,
    *,
    as_pods: bool = False,
) -> None:
    """Run a provider until a signal arrives or the lab is shut down.

    ``progress`` receives messages about the current step, and ``failed`` receives each error that
    keeps the provider from running. The provider runs as Pods if the lab has a node. Raises Refused
    if another run is active, and LabError if the lab is not running, or if ``as_pods`` is true and
    the lab has no node.
    """
    with _ended_by_signals(), _only_one(lab), ExitStack() as ends:
        connection = ends.enter_context(connect(lab))
        if as_pods:
            require_node(connection)
        infrastructure = None
        if connection.state.simulated and not provider.has_infrastructure:
            beside = ends.enter_context(connect(lab, _INFRASTRUCTURE))
            infrastructure = _infrastructure(provider, beside, progress)
        installed = _define(provider, connection, progress)
        current = ProviderRun(provider, lab, installed, infrastructure)
        try:
            _watch(provider, lab, current, progress, failed)
        except OSError as error:
            raise convert_os_error(error, lab.root) from error
        except KeyboardInterrupt:
            progress("ending the manager")
        finally:
            current.stop()


def _infrastructure(
    provider: ProviderRepository, lab: LabConnection, progress: Progress
) -> Installed:
    """Return the generated provider of simulated machines."""

    def prefixed(text: str) -> None:
        progress(f"simulated infrastructure: {text}")

    repository = generate_infrastructure(lab.lab, provider)
    return _define(repository, lab, prefixed, _INFRASTRUCTURE)


def _define(
    provider: ProviderRepository, lab: LabConnection, progress: Progress, label: str = "manager"
) -> Installed:
    kind = InstalledPods if lab.state.node else InstalledProvider
    return kind(provider, lab, progress, label)


def _watch(
    provider: ProviderRepository,
    lab: LabFolder,
    current: ProviderRun,
    progress: Progress,
    failed: Failed,
) -> None:
    """Restart ended managers and apply file changes while the lab runs."""
    # Read before the first start, so that no change is missed while the managers start.
    code, released = current.code_stamp(), provider.release_stamp()
    description = provider.description_stamp()
    is_broken = not current.restart(failed, is_release=True)
    while lab.is_running:
        time.sleep(_LOOK_SECONDS)
        # After a failed start only a changed file can help, so nothing is restarted until then.
        if not is_broken:
            current.look()
        new = current.code_stamp(), provider.release_stamp(), provider.description_stamp()
        if new == (code, released, description):
            continue
        if new[2] != description:
            progress("provider.yaml has changed: run capsmith update to install it")
        is_release = new[1] != released
        is_change = is_release or new[0] != code
        code, released, description = new
        if not is_change:
            continue
        progress("files have changed: restarting the provider")
        is_broken = not current.restart(failed, is_release=is_release)
    progress("the lab has ended")


@contextmanager
def _only_one(lab: LabFolder) -> Iterator[None]:
    """Hold the lock of a run.

    Raises Refused if another process holds it.
    """
    if not lab.root.is_dir():
        yield  # the connection says that there is no lab
        return
    lock = acquire(lab.run_lock)
    if lock is None:
        raise Refused(
            "lab-run-active",
            "a manager of this lab is already running",
            hint="End it with Ctrl-C where it was started.",
        )
    try:
        yield
    finally:
        os.close(lock)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C, so that the manager ends cleanly."""

    def end(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    former = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)
