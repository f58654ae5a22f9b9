"""Scales a control plane: takes the next step, or resumes an interrupted one."""

from __future__ import annotations

import re
import secrets
from dataclasses import replace
from typing import Final

from capsmith_runtime.contract import constants, metadata
from capsmith_runtime.contract.control_plane import ControlPlaneMachine
from capsmith_runtime.controlplane.annotations import (
    PendingMachine,
    RemediationStrategy,
    encode,
    find_remediation_delay,
    read_pending_machine,
    read_remediation_data,
    read_remediation_strategy,
    start_remediation,
)
from capsmith_runtime.controlplane.control_plane import (
    DELETE_MACHINE,
    REMEDIATE_MACHINE,
    ControlPlane,
    ReconcileSummary,
    find_health_problem,
    is_owned,
    needs_remediation,
)
from capsmith_runtime.controlplane.machine_client import MachineClient, MachineNameTakenError
from capsmith_runtime.controlplane.scale_decision import (
    MachineInput,
    ScaleDown,
    ScaleInput,
    ScaleUp,
    decide,
    find_limit,
)
from capsmith_runtime.kube.client import KubeClient, NamespacedName, Selection
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.kube.log import get_logger
from capsmith_runtime.reconcile.results import Waiting

_DEFAULT: Final = "{{ .controlPlane.name }}-{{ .random }}"
_VARIABLE: Final = re.compile(r"\{\{ *\.(cluster\.name|controlPlane\.name|random) *\}\}")
_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Characters of random name parts, without vowels so that they form no words."""
_RANDOM_CHARACTERS: Final = 5
_MAX_NAME: Final = 63
"""Maximum length of a Machine's name, which Nodes and their certificates share."""


def generate_machine_name(control_plane: str, cluster: str, template: str = "") -> str:
    """Return a new name with a random part, because a name must never be used twice.

    ``template`` is ``spec.machineNaming.template``, in which the CRD requires the random part.
    """
    random = "".join(secrets.choice(_ALPHABET) for _ in range(_RANDOM_CHARACTERS))
    values = {"cluster.name": cluster, "controlPlane.name": control_plane, "random": random}
    name = _VARIABLE.sub(lambda match: values[match[1]], template or _DEFAULT)
    if len(name) <= _MAX_NAME and random in name:
        return name
    kept = name[: _MAX_NAME - len(random) - 1].rstrip("-.")
    return f"{kept}-{random}"


_log = get_logger("control-plane")
CACHE_IS_STALE: Final = Waiting("CacheIsStale", "the cache of Machines is not up to date yet", 0.5)
CLEANING_UP: Final = Waiting(
    "RemovingLeftovers", "parts of an unfinished Machine are being deleted", 2.0
)


class MachineScaler:
    """Takes one scaling step at a time, and remembers deletions until the cache shows them."""

    def __init__(
        self, client: KubeClient, machines: Informer, machine_client: MachineClient
    ) -> None:
        self._client = client
        self._machines = machines
        self._machine_client = machine_client
        self._deleted: set[str] = set()

    def is_deleted(self, uid: str) -> bool:
        """Return whether this process has deleted the Machine with this UID."""
        return uid in self._deleted

    def forget(self, uids: set[str]) -> None:
        """Forget the deletions of these UIDs, which the cache has confirmed."""
        self._deleted -= uids

    async def remove_stale_annotations(
        self, control_plane: ControlPlane, summary: ReconcileSummary
    ) -> None:
        """Remove records from the control plane's annotations that are no longer needed.

        ``summary`` has the outdated Machines.
        """
        annotations = control_plane.annotations
        values = metadata.annotations(control_plane.obj)
        names = {machine.name for machine in control_plane.machines}
        stale: dict[str, None] = {}
        pending = read_pending_machine(values, annotations)
        # Once the cache shows the Machine, no reconcile can create it a second time.
        if annotations.pending_machine in values and (pending is None or pending.name in names):
            stale[annotations.pending_machine] = None
        in_progress = annotations.remediation_in_progress in values
        outdated = any(
            summary.outdated.get(machine.name) and not control_plane.is_deleting(machine)
            for machine in control_plane.machines
        )
        # Even if the Machines that are left suffice, a rollout creates another one.  Without the
        # record, its failure would not count as a retry.
        limit = find_limit(control_plane.replicas, control_plane.max_surge, is_rolling_out=outdated)
        if in_progress and not self._is_replacement_due(control_plane, limit):
            stale[annotations.remediation_in_progress] = None
        if stale:
            await control_plane.patcher.patch_annotations(stale)

    async def scale(self, control_plane: ControlPlane, summary: ReconcileSummary) -> None:
        """Decide on the next step and take it, or clean up after an interrupted one.

        At most one Machine is created or deleted.  The decision and any waits are recorded in
        ``summary``.  Raises ConflictError if another manager has written the control plane in the
        meantime.
        """
        strategy = read_remediation_strategy(control_plane.obj)
        scale_input = _scale_input(
            control_plane,
            summary,
            strategy,
            remediation_in_progress=self._is_replacement_due(control_plane, control_plane.replicas),
        )
        summary.decision = decide(scale_input)
        for machine in (m for m in control_plane.machines if needs_remediation(m)):
            annotation = control_plane.annotations.remediation_for
            retry = find_remediation_delay(machine, annotation, strategy, control_plane.now)
            summary.requeue_after(retry.seconds)
        step = summary.decision.step
        pending = _pending_machine(control_plane)
        resumable = isinstance(step, ScaleUp) and _is_current(pending, control_plane)
        if pending is not None and not resumable:
            await self._clean_up(control_plane, pending, summary)
        elif isinstance(step, ScaleUp):
            await self._scale_up(control_plane, pending, step, summary)
        elif isinstance(step, ScaleDown):
            await self._scale_down(control_plane, step, summary)

    async def clean_up(self, control_plane: ControlPlane, summary: ReconcileSummary) -> bool:
        """Delete the objects of a Machine that was never completed; return whether none is left."""
        pending = _pending_machine(control_plane)
        if pending is None:
            return True
        return await self._clean_up(control_plane, pending, summary)

    async def is_cache_fresh(self, control_plane: ControlPlane) -> bool:
        """Compare the cached Machines with a live list, and return whether they are the same.

        The caches for different kinds do not advance together. After a leader change, a record may
        appear to be removed before the Machine that was created for it appears.
        """
        labels = f"{constants.CLUSTER_NAME_LABEL}={control_plane.cluster.name}"
        selection = Selection(
            namespace=control_plane.cluster.namespace,
            labels=f"{labels},{constants.CONTROL_PLANE_LABEL}",
        )
        page = await self._client.list_page(self._machines.resource, selection)
        live = {
            (metadata.uid(obj), metadata.is_deleting(obj))
            for obj in page.items
            if is_owned(obj, control_plane.obj)
        }
        cached = {(m.uid, control_plane.is_deleting(m)) for m in control_plane.machines}
        return live == cached

    async def _scale_up(
        self,
        control_plane: ControlPlane,
        pending: PendingMachine | None,
        step: ScaleUp,
        summary: ReconcileSummary,
    ) -> None:
        annotations, desired = control_plane.annotations, control_plane.desired
        resumed = pending is not None
        if pending is None:
            if not await self.is_cache_fresh(control_plane):
                summary.wait(CACHE_IS_STALE)
                return
            name = generate_machine_name(
                control_plane.key.name, control_plane.cluster.name, control_plane.name_template
            )
            pending = desired.pending_machine(name, step.domain)
            # Recorded before any object is created: after a crash the next reconcile finds the
            # name, and completes this Machine instead of creating a second one.  Locked: a former
            # leader that still runs has read another version, so only one of the two writes
            # succeeds.
            record = {annotations.pending_machine: encode(pending)}
            await control_plane.patcher.patch_annotations(record, locked=True)
            _log.info("makes a machine", control_plane=str(control_plane.key), machine=name)
        values = metadata.annotations(control_plane.obj)
        replaced = read_remediation_data(values, annotations.remediation_in_progress)
        try:
            await self._machine_client.create(desired, pending, replaced, resumed=resumed)
        # The next reconcile chooses another name, after the objects of this one are gone.
        except MachineNameTakenError:
            await self._clean_up(control_plane, pending, summary)

    async def _scale_down(
        self, control_plane: ControlPlane, step: ScaleDown, summary: ReconcileSummary
    ) -> None:
        if not await self.is_cache_fresh(control_plane):
            summary.wait(CACHE_IS_STALE)
            return
        annotations = control_plane.annotations
        machine = next(m for m in control_plane.machines if m.name == step.name)
        if step.cause == "remediating":
            strategy = read_remediation_strategy(control_plane.obj)
            data = start_remediation(
                machine, annotations.remediation_for, strategy, control_plane.now
            )
            record = {annotations.remediation_in_progress: encode(data)}
            # Before the deletion, which would otherwise look like a deletion by a user: the retries
            # would start again at 0.
            await control_plane.patcher.patch_annotations(record, locked=True)
        await self._machine_client.delete(machine)
        # The cache may show the Machine as running for a while.  Without this the next reconcile
        # could delete another one, and cost the quorum.
        self._deleted.add(machine.uid)
        _log.info(
            "removes a machine",
            control_plane=str(control_plane.key),
            machine=machine.name,
            cause=step.cause,
        )

    async def _clean_up(
        self, control_plane: ControlPlane, pending: PendingMachine, summary: ReconcileSummary
    ) -> bool:
        # Ask the API server rather than the cache: the parts of an existing Machine must stay.
        if await self._machine_client.exists(control_plane.desired, pending.name):
            summary.wait(CACHE_IS_STALE)
            return False
        key = NamespacedName(control_plane.cluster.namespace, pending.name)
        if not await self._machine_client.clean_up(control_plane.desired, pending, key):
            summary.wait(CLEANING_UP)
            return False
        record = {control_plane.annotations.pending_machine: None}
        await control_plane.patcher.patch_annotations(record)
        # The decision of this reconcile assumed the record, so the next one follows immediately.
        summary.wait(replace(CACHE_IS_STALE, requeue_after=0.0))
        return True

    def _is_replacement_due(self, control_plane: ControlPlane, limit: int) -> bool:
        """Return whether a Machine was deleted to be replaced and has no replacement yet.

        ``limit`` is the number of Machines below which another one is created.
        """
        annotations = control_plane.annotations
        values = metadata.annotations(control_plane.obj)
        data = read_remediation_data(values, annotations.remediation_in_progress)
        if data is None:
            return False
        machines = control_plane.machines
        machine = next((m for m in machines if m.name == data.machine), None)
        if machine is not None:
            return control_plane.is_deleting(machine)
        replaced = (
            read_remediation_data(m.annotations, annotations.remediation_for) for m in machines
        )
        # A replacement carries the record of its remediation, so a record with this time or a later
        # one shows that the replacement exists.
        exists = any(each is not None and each.time >= data.time for each in replaced)
        # If the user has scaled down in the meantime, no replacement will come.
        return not exists and len(machines) < limit


def _scale_input(
    control_plane: ControlPlane,
    summary: ReconcileSummary,
    strategy: RemediationStrategy,
    *,
    remediation_in_progress: bool,
) -> ScaleInput:
    return ScaleInput(
        replicas=control_plane.replicas,
        max_surge=control_plane.max_surge,
        machines=[
            _machine_input(machine, control_plane, summary, strategy)
            for machine in control_plane.machines
        ],
        domains=control_plane.domains,
        initialized=summary.initialized,
        remediation_in_progress=remediation_in_progress,
    )


def _machine_input(
    machine: ControlPlaneMachine,
    control_plane: ControlPlane,
    summary: ReconcileSummary,
    strategy: RemediationStrategy,
) -> MachineInput:
    annotations = control_plane.annotations
    added = annotations.added in machine.annotations or machine.name in summary.added
    unhealthy = needs_remediation(machine)
    retry_after = ""
    if unhealthy:
        annotation = annotations.remediation_for
        retry = find_remediation_delay(machine, annotation, strategy, control_plane.now)
        retry_after = retry.message
    return MachineInput(
        name=machine.name,
        created=machine.created,
        domain=machine.failure_domain,
        joined=machine.node_name is not None and added,
        had_node=machine.node_name is not None or added,
        checks_passed=not find_health_problem(machine, summary.health.unhealthy),
        up_to_date=not summary.outdated.get(machine.name, ()),
        deleting=control_plane.is_deleting(machine),
        delete_annotation=DELETE_MACHINE in machine.annotations,
        needs_remediation=unhealthy,
        remediate_annotation=REMEDIATE_MACHINE in machine.annotations,
        remediation_retry_after=retry_after,
    )


def _pending_machine(control_plane: ControlPlane) -> PendingMachine | None:
    values = metadata.annotations(control_plane.obj)
    return read_pending_machine(values, control_plane.annotations)


def _is_current(pending: PendingMachine | None, control_plane: ControlPlane) -> bool:
    """Return whether the record matches what would be written now, ignoring the failure domain."""
    if pending is None:
        return False
    return pending == control_plane.desired.pending_machine(pending.name, pending.domain)
