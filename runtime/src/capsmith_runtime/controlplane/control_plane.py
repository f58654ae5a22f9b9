"""A control plane's state during a single reconcile: object, Cluster, Machines and results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from capsmith_runtime.contract import metadata, times
from capsmith_runtime.contract.constants import (
    HEALTH_CHECK_SUCCEEDED_CONDITION,
    OWNER_REMEDIATED_CONDITION,
)
from capsmith_runtime.contract.control_plane import (
    PRE_TERMINATE_PREFIX,
    ControlPlaneMachine,
    ControlPlaneShape,
    CoreMachines,
)
from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.contract.field_paths import read_at_contract_paths
from capsmith_runtime.contract.kubernetes_version import normalize
from capsmith_runtime.contract.model import Object, ObjectRef
from capsmith_runtime.controlplane.annotations import Annotations
from capsmith_runtime.controlplane.api import ControlPlaneHealth
from capsmith_runtime.controlplane.desired_machine import DesiredMachine
from capsmith_runtime.controlplane.kind import ControlPlaneKind
from capsmith_runtime.controlplane.patcher import ControlPlanePatcher
from capsmith_runtime.controlplane.rollout import RolloutCriteria
from capsmith_runtime.controlplane.scale_decision import Decision
from capsmith_runtime.errors import ReconcileError, TerminalError
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.reconcile.caches import BY_CONTROL_PLANE, Caches
from capsmith_runtime.reconcile.results import Waiting

_DAY_SECONDS = 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlane:
    """Snapshot of a control plane for a single reconcile, with its Machines, oldest first."""

    key: NamespacedName
    patcher: ControlPlanePatcher
    cluster: Cluster
    domains: Sequence[str]
    """Names of the failure domains for control plane machines."""
    machines: tuple[ControlPlaneMachine, ...]
    objects: Mapping[str, JSON]
    """The Machine objects, keyed by name."""
    deleted: frozenset[str]
    """Names of the Machines that this process has deleted, even if the cache still has them."""
    foreign_machines: Sequence[str]
    """Names of the cluster's control plane Machines that this control plane does not own."""
    replicas: int
    max_surge: int
    """Maximum number of Machines above ``replicas`` during a rollout: 0 or 1."""
    name_template: str
    """Template for the names of new Machines, or an empty string for the default."""
    desired: DesiredMachine
    criteria: RolloutCriteria
    annotations: Annotations
    now: datetime

    @property
    def obj(self) -> JSON:
        """Return the control plane object, including this reconcile's writes."""
        return self.patcher.obj

    def is_deleting(self, machine: ControlPlaneMachine) -> bool:
        """Return whether a Machine is being deleted.

        Deletions that this process has requested count even if the cache does not show them yet.
        """
        return machine.deleting or machine.name in self.deleted


def load_control_plane(
    kind: ControlPlaneKind,
    caches: Caches,
    shape: ControlPlaneShape,
    core: CoreMachines,
    patcher: ControlPlanePatcher,
    cluster: Cluster,
    is_deleted: Callable[[str], bool],
    now: datetime,
) -> ControlPlane:
    """Return a control plane's state from the caches, which may lag behind the API server.

    ``is_deleted`` returns whether this process has deleted the Machine with a UID; ``now`` is in
    UTC.
    """
    obj, key = patcher.obj, NamespacedName(cluster.namespace, cluster.name)
    owned, foreign = find_control_plane_machines(caches, obj, cluster.namespace, cluster.name)
    # Timestamps have whole seconds: without the name, the oldest Machine could differ between
    # reconciles.
    machines = sorted((core.read(each) for each in owned), key=lambda m: (m.created, m.name))
    desired = _desired_machine(kind, shape, obj, cluster)
    replicas = metadata.lookup(obj, "spec", "replicas")
    strategy = metadata.mapping(obj, "spec", "rollout", "strategy")
    return ControlPlane(
        key=NamespacedName(metadata.namespace(obj), metadata.name(obj)),
        patcher=patcher,
        cluster=cluster,
        domains=core.read_failure_domains(caches.clusters.get(key) or {}),
        machines=tuple(machines),
        objects={metadata.name(each): each for each in owned},
        deleted=frozenset(machine.name for machine in machines if is_deleted(machine.uid)),
        foreign_machines=sorted(metadata.name(each) for each in foreign),
        # Never scale to zero: new Machines would have nothing to join.
        replicas=max(1, replicas) if isinstance(replicas, int) else 1,
        # The contract allows only 0 and 1; any other value, or none, means 1.
        max_surge=0 if metadata.lookup(strategy, "rollingUpdate", "maxSurge") == 0 else 1,
        name_template=metadata.text(obj, "spec", "machineNaming", "template"),
        desired=desired,
        criteria=_rollout_criteria(desired, obj),
        annotations=desired.annotations,
        now=now,
    )


def find_control_plane_machines(
    caches: Caches, obj: JSON, namespace: str, cluster: str | None
) -> tuple[list[JSON], list[JSON]]:
    """Return a cluster's control plane Machines as two lists: owned and not owned (CP-19)."""
    value = f"{namespace}/{cluster}"
    members = list(caches.machines.by_index(BY_CONTROL_PLANE, value)) if cluster else []
    owned = [each for each in members if is_owned(each, obj)]
    return owned, [each for each in members if not is_owned(each, obj)]


def build_deleted_cluster(namespace: str, name: str) -> Cluster:
    """Create a substitute for a deleted Cluster, so that its control plane can be deleted."""
    return Cluster(
        name=name,
        namespace=namespace,
        uid="",
        labels={},
        annotations={},
        deleting=True,
        paused=False,
        infrastructure_provisioned=False,
        control_plane_initialized=False,
        control_plane_endpoint=None,
        infrastructure=None,
        pod_cidrs=(),
        service_cidrs=(),
        api_server_port=None,
    )


def _desired_machine(
    kind: ControlPlaneKind, shape: ControlPlaneShape, obj: JSON, cluster: Cluster
) -> DesiredMachine:
    resource, version = kind.resource, metadata.text(obj, "spec", "version")
    return DesiredMachine(
        owner=obj,
        cluster=cluster,
        template=shape.read_machine_template(read_at_contract_paths(obj, kind.field_paths)),
        version=normalize(version) if version else "",
        bootstrap=ObjectRef(kind.bootstrap_group, kind.bootstrap_kind, ""),
        bootstrap_spec=metadata.lookup(obj, "spec", "bootstrapConfigSpec"),
        annotations=Annotations(f"{resource.kind.lower()}.{resource.group}"),
    )


def _rollout_criteria(desired: DesiredMachine, obj: JSON) -> RolloutCriteria:
    days: Any = metadata.lookup(obj, "spec", "rollout", "before", "certificatesExpiryDays")
    return RolloutCriteria(
        version=desired.version,
        template=desired.template.infrastructure,
        bootstrap_spec=desired.bootstrap_spec or {},
        bootstrap_annotation=desired.annotations.bootstrap_spec,
        rollout_after=times.parse_time(metadata.lookup(obj, "spec", "rollout", "after")),
        certificates_expiry_seconds=days * _DAY_SECONDS if isinstance(days, int) else None,
    )


REMEDIATE_MACHINE: Final = "cluster.x-k8s.io/remediate-machine"
SKIP_REMEDIATION: Final = "cluster.x-k8s.io/skip-remediation"
DELETE_MACHINE: Final = "cluster.x-k8s.io/delete-machine"
NODE_HEALTHY: Final = "NodeHealthy"
UP_TO_DATE: Final = "UpToDate"


def is_owned(obj: Object, owner: Object) -> bool:
    """Return whether ``owner`` owns ``obj``, compared by UID because names can be reused."""
    uid = metadata.uid(owner)
    return any(
        reference.get("uid") == uid
        for reference in metadata.items(obj, "metadata", "ownerReferences")
    )


def needs_remediation(machine: ControlPlaneMachine) -> bool:
    """Return whether the Machine must be replaced (CP-31).

    A replacement is due if a health check failed and left the replacement to the owner, or if an
    annotation requests one.
    """
    # The user's veto takes precedence over both requests.
    if SKIP_REMEDIATION in machine.annotations:
        return False
    return REMEDIATE_MACHINE in machine.annotations or (
        machine.has_condition(HEALTH_CHECK_SUCCEEDED_CONDITION, "False")
        and machine.has_condition(OWNER_REMEDIATED_CONDITION, "False")
    )


def find_health_problem(machine: ControlPlaneMachine, reported: Mapping[str, str]) -> str:
    """Return a description of the Machine's health problem, or an empty string if it is healthy.

    ``reported`` is the ``health`` hook's result: messages keyed by the Machine's name.
    """
    if machine.name in reported:
        return reported[machine.name]
    if machine.has_condition(HEALTH_CHECK_SUCCEEDED_CONDITION, "False"):
        return (
            machine.conditions[HEALTH_CHECK_SUCCEEDED_CONDITION].message
            or "a health check has failed"
        )
    node = machine.conditions.get(NODE_HEALTHY)
    # Before the Node is known, its condition only reports that the Machine is still starting.
    if machine.node_name is not None and node is not None and node.status != "True":
        return node.message or "its Node is not healthy"
    return ""


def has_other_pre_terminate_hooks(machine: ControlPlaneMachine, own: str) -> bool:
    """Return whether other controllers' hooks delay the Machine's deletion.

    ``own`` is this controller's hook, which must come last, because the others may need the server.
    """
    hooks = [name for name in machine.annotations if name.startswith(PRE_TERMINATE_PREFIX)]
    return any(name != own for name in hooks)


class HookCallError(ReconcileError):
    """Raised if a hook failed or returned an invalid value."""


class TerminalHookCallError(HookCallError, TerminalError):
    """Raised if a control plane hook in the author's code raised TerminalError."""


@dataclass(slots=True, kw_only=True)
class ReconcileSummary:
    """Results collected during a reconcile, which writes them into the status at its end."""

    initialized: bool
    not_adopted: Mapping[str, str] = field(default_factory=dict)
    """Sentences that say why Machines without a controller cannot be adopted, keyed by name."""
    outdated: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Reasons why Machines are outdated, keyed by name; Machines not compared are missing."""
    added: set[str] = field(default_factory=set)
    """Names of the Machines whose ``after_add`` hook has completed."""
    health: ControlPlaneHealth = field(default_factory=ControlPlaneHealth)
    is_health_known: bool = False
    """Whether this reconcile's ``health`` hook has returned ``health``."""
    decision: Decision = field(default_factory=Decision)
    waits: list[Waiting] = field(default_factory=list)
    """The reasons why the control plane cannot make progress."""
    certificates: Waiting | None = None
    """A Waiting with the reason why there are no usable certificates, or None if there are some."""
    certificates_message: str = ""
    """Message about certificates that can be used, such as their expiry, empty if there is none."""
    error: HookCallError | None = None
    blocks_scaling: bool = False
    """Whether no Machine may be created or deleted, because of a wait or an error."""
    requeue: list[float] = field(default_factory=list)
    """Requested seconds until the next reconcile; the smallest value applies."""

    def keep_results_of_hooks(self, earlier: ReconcileSummary) -> None:
        """Copy the hook results from an earlier reconcile if this one may not call hooks yet."""
        self.health = earlier.health
        self.decision = earlier.decision
        self.waits = earlier.waits
        self.error = earlier.error

    def wait(self, waiting: Waiting, *, blocks_scaling: bool = True) -> None:
        """Record a wait, and request another reconcile after its delay."""
        self.waits.append(waiting)
        self.blocks_scaling |= blocks_scaling
        self.requeue_after(waiting.requeue_after)

    def fail(self, error: HookCallError, *, blocks_scaling: bool = True) -> None:
        """Record a failed hook."""
        self.error = error
        self.blocks_scaling |= blocks_scaling

    def requeue_after(self, seconds: float | None) -> None:
        """Request another reconcile after ``seconds``; None leaves the requests unchanged."""
        if seconds is not None:
            self.requeue.append(seconds)
