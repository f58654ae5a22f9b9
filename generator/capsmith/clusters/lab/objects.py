"""A cluster's objects for the demo's table: whether they are ready, and what they are waiting
for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from capsmith.clusters.hiding import hide_in_line
from capsmith.clusters.lab.secret_names import Holder, find_secret_names
from capsmith.clusters.processes.kube import JSON
from capsmith.printable import make_printable

CLUSTER_NAME = "cluster.x-k8s.io/cluster-name"
_MAX_MESSAGE = 2_000
_MAX_IN_TABLE = 100
"""Maximum length of a condition's message in the demo's table, in characters."""
# Conditions that block others come first.
_ORDER = (
    "Healthy",
    "InfrastructureReady",
    "BootstrapConfigReady",
    "ControlPlaneInitialized",
    "NodeHealthy",
    "NodeReady",
    "MachinesReady",
    "Ready",
    "Available",
)
_ERROR = re.compile(
    r"Error|Exception|Fail|Refused|Denied|Forbidden|Unauthorized|Invalid|Incomplete|Exceeded"
    r"|Taken|TooMany|TooLong|Changed|Exhausted|Unreachable|AlreadyExists|^Unknown[A-Z]"
    r"|Not(?:Found|Allowed|Opened|Usable|Declared)"
)
"""Reasons of conditions after an error, which does not go away by waiting.

It matches all reasons of the runtime that report errors. Authors are free to choose others, so
another error may still be taken for a wait.
"""
# These conditions are True while something is in progress, not when it is done.
_NEGATIVE = {
    "Paused",
    "Deleting",
    "RollingOut",
    "ScalingUp",
    "ScalingDown",
    "Remediating",
    "Stale",
}


@dataclass(frozen=True)
class MachineObjects:
    """A Machine, and the objects that providers create for it."""

    machine: JSON
    infrastructure: JSON | None = None
    bootstrap: JSON | None = None
    """The Machine's bootstrap configuration; None if it is a KubeadmConfig."""


@dataclass(frozen=True)
class Cluster:
    """A Cluster and all its related objects, at one point in time."""

    cluster: JSON | None
    infrastructure: JSON | None = None
    control_plane: JSON | None = None
    deployments: tuple[JSON, ...] = ()
    machines: tuple[MachineObjects, ...] = ()

    @property
    def wanted(self) -> int:
        """Return the number of Machines that the cluster's objects request."""
        sized = [*self.deployments, *([self.control_plane] if self.control_plane else [])]
        return sum(int(each["spec"].get("replicas") or 0) for each in sized)

    @property
    def running(self) -> int:
        """Return the number of running Machines."""
        return sum(_phase(each.machine) == "Running" for each in self.machines)

    @property
    def is_running(self) -> bool:
        """Return whether exactly the requested Machines exist and all are running.

        A cluster that requests none runs once core reports it as provisioned.
        """
        if self.wanted or self.machines:
            return self.wanted == self.running == len(self.machines)
        cluster = self.cluster or {}
        # Core creates the workers of a topology after the Cluster.
        has_workers = bool(cluster.get("spec", {}).get("topology", {}).get("workers"))
        is_provided = self.infrastructure is not None and not has_workers
        return is_provided and _phase(cluster) == "Provisioned"


@dataclass(frozen=True)
class ObjectRow:
    """One object's row in the table that `capsmith lab demo` prints."""

    depth: int
    kind: str
    name: str
    state: str
    waiting: str
    """What the object is waiting for; empty if it is ready."""


def format_rows(found: Cluster) -> list[ObjectRow]:
    """Return the rows of a cluster's table, with each object below its owner."""
    if found.cluster is None:
        return []
    return list(_rows(found))


def _rows(found: Cluster) -> Iterator[ObjectRow]:
    cluster = found.cluster or {}
    yield _row(0, cluster, _phase(cluster), is_done=_phase(cluster) == "Provisioned")
    if found.infrastructure is not None:
        yield _provided(1, found.infrastructure)
    control_plane, names = found.control_plane, set()
    if control_plane is not None:
        is_managed = (control_plane.get("status") or {}).get("externalManagedControlPlane")
        yield (_initialized if is_managed else _sized)(1, control_plane)
        for each in found.machines:
            if _owner(each.machine) == control_plane["kind"]:
                names.add(_name(each.machine))
                yield from _machine(each)
    for deployment in found.deployments:
        yield _sized(1, deployment)
        for each in found.machines:
            if _deployment(each.machine) == _name(deployment):
                names.add(_name(each.machine))
                yield from _machine(each)
    for each in found.machines:
        if _name(each.machine) not in names:
            yield from _machine(each)


def _machine(found: MachineObjects) -> Iterator[ObjectRow]:
    phase = _phase(found.machine)
    yield _row(2, found.machine, phase, is_done=phase == "Running")
    if found.bootstrap is not None:
        yield _configured(3, found.bootstrap)
    if found.infrastructure is not None:
        yield _provided(3, found.infrastructure)


def _configured(depth: int, obj: JSON) -> ObjectRow:
    status = obj.get("status") or {}
    initialization = status.get("initialization") or {}
    is_done = bool(initialization.get("dataSecretCreated") or status.get("ready"))
    return _row(depth, obj, "Data created" if is_done else "Waiting", is_done=is_done)


def _provided(depth: int, obj: JSON) -> ObjectRow:
    status = obj.get("status") or {}
    is_done = bool((status.get("initialization") or {}).get("provisioned") or status.get("ready"))
    return _row(depth, obj, "Provisioned" if is_done else "Provisioning", is_done=is_done)


def _initialized(depth: int, obj: JSON) -> ObjectRow:
    """Return the row of a control plane that has no Machines to count."""
    status = obj.get("status") or {}
    initialization = status.get("initialization") or {}
    is_done = bool(initialization.get("controlPlaneInitialized") or status.get("initialized"))
    return _row(depth, obj, "Initialized" if is_done else "Initializing", is_done=is_done)


def _sized(depth: int, obj: JSON) -> ObjectRow:
    status, desired = obj.get("status") or {}, int(obj["spec"].get("replicas") or 0)
    ready = int(status.get("readyReplicas") or 0)
    return _row(depth, obj, f"{ready} of {desired} ready", is_done=ready == desired)


def _row(depth: int, obj: JSON, state: str, *, is_done: bool) -> ObjectRow:
    if obj["metadata"].get("deletionTimestamp"):
        state, is_done = "Deleting", False
    waiting = "" if is_done else _describe_blocker(obj)
    state, waiting = (make_printable(hide_in_line(each)) for each in (state, waiting))
    return ObjectRow(depth, str(obj["kind"]), _name(obj), state or "Pending", waiting)


def _describe_blocker(obj: JSON) -> str:
    """Return what blocks an object, short, with the names of Secrets that an error may be about."""
    blocker = find_blocker(obj)
    if blocker is None:
        return ""
    # The words that show what an error is about may be in the part that is left out.
    secrets = find_secret_names(blocker.text, [Holder(obj)]) if blocker.is_error else ""
    return f"{blocker.describe(_MAX_IN_TABLE)}{secrets}"


@dataclass(frozen=True)
class Blocker:
    """The condition that blocks an object."""

    title: str
    """Type and reason of the condition."""
    message: str
    """Message of the condition in one line, with secrets hidden."""
    is_error: bool
    """Whether something has failed; otherwise the object only waits."""

    @property
    def text(self) -> str:
        """Return type, reason and message of the condition, in one line."""
        return self.describe(_MAX_MESSAGE)

    def describe(self, max_message: int) -> str:
        """Return the text with at most ``max_message`` characters of the message.

        The end of an error is kept, because many SDKs name the cause last.
        """
        if not self.message:
            return self.title
        if len(self.message) <= max_message:
            return f"{self.title}: {self.message}"
        if not self.is_error:
            return f"{self.title}: {self.message[:max_message]} …"
        end = max_message // 2
        start = self.message[: max_message - end]
        return f"{self.title}: {start} … {self.message[-end:]}"


def find_blocker(obj: JSON) -> Blocker | None:
    """Return the condition that blocks an object, or None if nothing blocks it.

    The title omits the condition's reason if the message already contains it, or if it says no more
    than the status does, such as NotReady or Waiting.
    """
    conditions = {each["type"]: each for each in (obj.get("status") or {}).get("conditions") or []}
    open_ = {
        type: each
        for type, each in conditions.items()
        if type not in _NEGATIVE and each.get("status") != "True"
    }
    order = [*_ORDER, *sorted(open_)]
    for type in sorted(open_, key=order.index):
        condition = open_[type]
        reason, message = (str(condition.get(key) or "") for key in ("reason", "message"))
        # A secret that is cut would no longer be recognized.
        visible = hide_in_line(message or reason)
        line = " ".join(each.strip("* ") for each in visible.splitlines())
        is_known = reason in line or reason.startswith("Not") or reason == "Waiting"
        title = type if is_known or not line else f"{type} ({reason})"
        is_error = not reason.startswith("Waiting") and _ERROR.search(reason) is not None
        return Blocker(title, line, is_error)
    return None


def describe_changes(before: list[ObjectRow], now: list[ObjectRow]) -> list[ObjectRow]:
    """Return the rows in ``now`` that are not in ``before``, or that differ from it."""
    known = {(row.kind, row.name): row for row in before}
    return [row for row in now if known.get((row.kind, row.name)) != row]


def _name(obj: JSON) -> str:
    return str(obj["metadata"]["name"])


def _phase(obj: JSON) -> str:
    return str((obj.get("status") or {}).get("phase") or "")


def _owner(machine: JSON) -> str:
    owners = machine["metadata"].get("ownerReferences") or []
    return next((str(each["kind"]) for each in owners if each.get("controller")), "")


def _deployment(machine: JSON) -> str:
    labels = machine["metadata"].get("labels") or {}
    return str(labels.get("cluster.x-k8s.io/deployment-name", ""))
