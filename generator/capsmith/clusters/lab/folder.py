"""Labs' folders, and how to detect whether a lab is running.

A lab is running while a process holds the lock on its folder. The kernel releases the lock when the
supervisor exits for any reason.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from capsmith.clusters.lab.errors import (
    convert_os_error,
    lab_already_running,
    lab_not_chosen,
    lab_not_running,
)
from capsmith.clusters.processes.folders import remove_folder
from capsmith.errors import UnreadableInput

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
_PRIVATE = 0o700
# A process that checks the lock holds it for a moment.
_ATTEMPTS = 10
_ATTEMPT_SECONDS = 0.05


class LabFolder:
    """The paths to the files in a lab's folder, such as its state, logs and kubeconfig."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.name = root.name
        self.lock = root / "lock"
        self.run_lock = root / "run.lock"
        self.state = root / "state.json"
        self.run_state = root / "run.json"
        self.log = root / "lab.log"
        self.run_log = root / "run.log"
        self.repository = root / "repository"
        self.commands = root / "bin"
        """Path to the folder of kubectl and clusterctl, for commands that run in the lab."""
        self.pki = root / "pki"
        self.management = root / "management"
        self.pid = root / "pid"
        """Path to the file with the supervisor's process id."""
        self.node = root / "node"
        """Path to the folder of the node's files, if the lab has a node."""
        self.kubeconfig = root / "kubeconfig"
        """Path to the kubeconfig of an existing cluster that the lab uses."""
        self.kind = root / "kind"
        """Path to a file that exists as long as the lab has a kind cluster."""
        self.cloud = root / "cloud"
        """Path to the simulated cloud, for a provider whose infrastructure is still a scaffold."""
        self.page_lock = root / "page.lock"
        """Path to a file that the background process of the page locks."""
        self.page_start_lock = root / "page-start.lock"
        """Path to a file that a command locks while it starts the page in the background."""
        self.page_opener = root / "background-page.html"
        """Path to the file that opens the page of the background process."""
        self.page_log = root / "page.log"
        self.kills = root / "kills"
        """Path to the folder with a file for each manager that the page of the lab has killed."""
        self.faults = root / "faults"
        """Path to the file with the simulated cloud's faults, which is read at each call."""

    @property
    def is_running(self) -> bool:
        """Return whether the lab's supervisor is running."""
        return is_held(self.lock)

    def create(self) -> int:
        """Create and lock the folder, and return a descriptor. Closing it releases the lock.

        Files of a crashed lab are removed.  Raises Refused if a lab with this name is running.
        """
        try:
            self.root.parent.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
            self.root.mkdir(mode=_PRIVATE, exist_ok=True)
            descriptor = acquire(self.lock)
            if descriptor is None:
                raise lab_already_running(self.name)
            # Only while holding the lock: the files of a running lab must not be touched.
            for path in self.root.iterdir():
                if path != self.lock:
                    _remove(path)
            return descriptor
        except OSError as error:
            raise convert_os_error(error, self.root) from error

    def remove(self) -> None:
        """Remove the folder and, if this was the last lab, the parent folders as well."""
        remove_folder(self.root, parents=2)


def read_pid(lab: LabFolder) -> int:
    """Return the supervisor's process id on the host, or 0 if it is unknown."""
    try:
        return int(lab.pid.read_text())
    except (OSError, ValueError):
        return 0


def find_labs_folder(environment: Mapping[str, str]) -> Path:
    """Return the path to the folder that contains all labs: `$XDG_STATE_HOME/capsmith/lab`."""
    base = Path(environment.get("XDG_STATE_HOME") or "")
    if not base.is_absolute():
        base = Path(environment.get("HOME") or Path.home()) / ".local" / "state"
    return base / "capsmith" / "lab"


def list_labs(labs: Path) -> list[str]:
    """Return the sorted names of all labs that are running or have left files behind."""
    if not labs.is_dir():
        return []
    return sorted(path.name for path in labs.iterdir() if path.is_dir())


def resolve_lab(labs: Path, name: str) -> LabFolder:
    """Return the folder of the lab with this name, whether or not it exists.

    Raises UnreadableInput if the name is invalid.
    """
    if not _NAME.fullmatch(name):
        hint = "Use lower-case letters, digits and hyphens."
        raise UnreadableInput("lab-name", f"{name!r} is not a valid name of a lab", hint=hint)
    return LabFolder(labs / name)


def choose_lab(labs: Path, name: str | None, provider: str | None) -> LabFolder:
    """Return the named lab, else the lab for the current folder's provider, else the only lab.

    Raises LabError if the named lab does not exist, or if there is no lab, or several without a
    clear choice.
    """
    names = list_labs(labs)
    for wanted in (name, provider):
        if wanted is not None and (wanted in names or wanted == name):
            return find_lab(labs, wanted)
    if len(names) != 1:
        raise lab_not_chosen(names)
    return resolve_lab(labs, names[0])


def find_lab(labs: Path, name: str) -> LabFolder:
    """Return the folder of an existing lab.

    Raises LabError if the lab does not exist.
    """
    lab = resolve_lab(labs, name)
    if not lab.root.is_dir():
        raise lab_not_running(name)
    return lab


def acquire(lock: Path) -> int | None:
    """Lock a file and return a descriptor for it, or None if another process holds the lock.

    The lock is held until the descriptor is closed.
    """
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    for _ in range(_ATTEMPTS):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        except BlockingIOError:
            time.sleep(_ATTEMPT_SECONDS)
    os.close(descriptor)
    return None


@contextmanager
def hold(lock: Path) -> Iterator[None]:
    """Return a context manager that holds the lock on a file.

    On entry, it waits until no other process holds the lock.
    """
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def is_held(lock: Path) -> bool:
    """Return whether any process holds the lock on a file."""
    try:
        descriptor = os.open(lock, os.O_RDWR)
    except OSError:
        return False
    try:
        # A shared lock, so that several processes can check at the same time without seeing each
        # other.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


_PROCESSES = Path("/proc")


def find_holders(lock: Path) -> list[int] | None:
    """Return the process ids of all other processes that have a lock file open.

    Returns None if the operating system cannot list them, as on macOS.  Other users' processes are
    left out.
    """
    if not (_PROCESSES / "self" / "fd").is_dir():
        return None
    found = []
    for process in _PROCESSES.glob("[0-9]*"):
        # Processes of other users, and processes that are just ending, cannot be read.
        with suppress(OSError):
            if any(_is_same(each, lock) for each in (process / "fd").iterdir()):
                found.append(int(process.name))
    return sorted(set(found) - {os.getpid()})


def _is_same(descriptor: Path, file: Path) -> bool:
    try:
        return descriptor.samefile(file)
    except OSError:
        return False


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
