"""In-place updates of Machines and their objects, without a rollout (CP-20, CP-21)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from capsmith_runtime.contract import metadata, times
from capsmith_runtime.contract.constants import (
    CLUSTER_KIND,
    CORE_GROUP,
    HEALTH_CHECK_SUCCEEDED_CONDITION,
    OWNER_REMEDIATED_CONDITION,
    REASON_WAITING_FOR_REMEDIATION,
)
from capsmith_runtime.contract.control_plane import ControlPlaneMachine, CoreMachines
from capsmith_runtime.contract.model import Condition
from capsmith_runtime.controlplane.control_plane import (
    UP_TO_DATE,
    ControlPlane,
    ReconcileSummary,
    needs_remediation,
)
from capsmith_runtime.controlplane.desired_machine import propagate_metadata
from capsmith_runtime.controlplane.external_objects import (
    ExternalObject,
    ExternalObjects,
    rank_version,
)
from capsmith_runtime.controlplane.rollout import find_outdated_reasons
from capsmith_runtime.controlplane.scale_decision import (
    CANNOT_BE_REMEDIATED,
    DEFERRED,
    MACHINE_DELETING,
    RemediationStatus,
)
from capsmith_runtime.errors import ConflictError, NotFoundError
from capsmith_runtime.kube.client import JSON, KubeClient, NamespacedName
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.kube.patch import merge_patch, write
from capsmith_runtime.reconcile.caches import Caches

CONFLICT_SECONDS: Final = 1.0
"""Seconds until the next reconcile if an object has changed since it was read."""


class MachineSyncer:
    """Updates existing Machines, their infrastructure and bootstrap objects in place.

    The updates make these objects match the control plane; only differences are written.
    """

    def __init__(
        self,
        client: KubeClient,
        machines: Informer,
        core: CoreMachines,
        external: ExternalObjects,
    ) -> None:
        self._client = client
        self._machines = machines
        self._core = core
        self._external = external

    async def reconcile_template(
        self, control_plane: ControlPlane, summary: ReconcileSummary
    ) -> None:
        """Make the Cluster an owner of the infrastructure template (CP-21).

        Requests another reconcile in ``summary`` if the template has changed since it was read.
        Raises any error that occurs when the template is read.
        """
        cluster = control_plane.cluster
        reference = control_plane.desired.template.infrastructure
        template = await self._external.get_template(cluster.namespace, reference)
        owners = metadata.items(template.obj, "metadata", "ownerReferences")
        owner = {
            "apiVersion": f"{CORE_GROUP}/{self._core.version}",
            "kind": CLUSTER_KIND,
            "name": cluster.name,
            "uid": cluster.uid,
        }
        if any(_is_current(each, owner) for each in owners):
            return
        # A Cluster that was moved or restored has another UID.  The garbage collector would delete
        # the template if all its owners were references to the old one.
        stale = (CLUSTER_KIND, cluster.name)
        kept = [each for each in owners if (each.get("kind"), each.get("name")) != stale]
        changed = {**template.obj["metadata"], "ownerReferences": [*kept, owner]}
        new = {**template.obj, "metadata": changed}
        await self._write(template.informer, template.obj, new, summary)

    async def sync(
        self,
        control_plane: ControlPlane,
        machine: ControlPlaneMachine,
        hooks: Mapping[str, str | None],
        summary: ReconcileSummary,
    ) -> tuple[str, ...]:
        """Update a Machine and its objects in place; return the remaining reasons to replace it.

        ``hooks`` are annotations to set on the Machine; a value of None removes one.  Requests
        another reconcile in ``summary`` if one of the objects has changed since it was read.
        """
        await self._write_machine(control_plane, machine, hooks, summary)
        namespace = machine.namespace
        infrastructure = await self._external.get(namespace, machine.infrastructure)
        bootstrap = await self._external.get(namespace, machine.bootstrap)
        if not machine.deleting:
            for external in (infrastructure, bootstrap):
                await self._write_external(control_plane, external, summary)
        return find_outdated_reasons(
            machine,
            control_plane.criteria,
            infrastructure.obj if infrastructure else None,
            bootstrap.obj if bootstrap else None,
            control_plane.now,
        )

    async def annotate(self, machine: ControlPlaneMachine, annotations: Mapping[str, Any]) -> None:
        """Set annotations on a Machine, or remove those whose value is None.

        Does nothing if the Machine no longer exists.
        """
        key = NamespacedName(machine.namespace, machine.name)
        # No resource version: a merge patch changes only the annotations that it names.
        body = {"metadata": {"annotations": dict(annotations)}}
        try:
            self._machines.update_from_write(
                await self._client.patch(self._machines.resource, key, body)
            )
        except NotFoundError:
            return  # the watch reports the deletion

    async def write_conditions(
        self,
        obj: JSON,
        present: Sequence[Condition],
        absent: Sequence[str],
        now: str,
    ) -> None:
        """Write the Machine conditions that the Machine's owner maintains (CP-31, CP-32).

        Raises ConflictError if core has changed the Machine since it was read.
        """
        status = self._core.build_status(obj, present, absent, now)
        changed = merge_patch(dict(metadata.mapping(obj, "status")), status)
        if not changed:
            return
        key = NamespacedName(metadata.namespace(obj), metadata.name(obj))
        # Core's conditions are in the same list, which a merge patch replaces as a whole.
        version = obj["metadata"]["resourceVersion"]
        try:
            self._machines.update_from_write(
                await self._client.patch_status(
                    self._machines.resource, key, {"status": changed}, resource_version=version
                )
            )
        except NotFoundError:
            return  # the watch reports the deletion

    async def _write_machine(
        self,
        control_plane: ControlPlane,
        machine: ControlPlaneMachine,
        hooks: Mapping[str, str | None],
        summary: ReconcileSummary,
    ) -> None:
        desired = control_plane.desired
        old = control_plane.objects[machine.name]
        new = {**old, "spec": self._core.build_spec(old, desired.template.settings)}
        if not machine.deleting:
            annotation = control_plane.annotations.propagated
            new["metadata"] = propagate_metadata(old, desired.template_metadata, annotation)
        annotations = dict(metadata.annotations(new))
        annotations |= {name: text for name, text in hooks.items() if text is not None}
        for name in (name for name, text in hooks.items() if text is None):
            annotations.pop(name, None)
        new["metadata"] = {
            **new["metadata"],
            "annotations": annotations,
            "ownerReferences": metadata.current_owners(old, desired.owner),
        }
        await self._write(self._machines, old, new, summary)

    async def _write_external(
        self,
        control_plane: ControlPlane,
        external: ExternalObject | None,
        summary: ReconcileSummary,
    ) -> None:
        if external is None or metadata.is_deleting(external.obj):
            return
        template = control_plane.desired.template_metadata
        changed = propagate_metadata(external.obj, template, control_plane.annotations.propagated)
        new = {**external.obj, "metadata": changed}
        await self._write(external.informer, external.obj, new, summary)

    async def _write(
        self, informer: Informer, old: JSON, new: JSON, summary: ReconcileSummary
    ) -> None:
        try:
            await write(self._client, informer.resource, old, new, informer.update_from_write)
        except NotFoundError:
            return  # the watch reports the deletion
        except ConflictError:
            # The event of the other write may trigger no reconcile, because the control plane does
            # not react to most changes that core makes to a Machine's status.
            summary.requeue_after(CONFLICT_SECONDS)


def _is_current(reference: Mapping[str, Any], owner: Mapping[str, Any]) -> bool:
    """Return whether a reference is to ``owner``, in its API version or a later one.

    Core writes the owner of a template too: an earlier version than core's would be replaced again
    and again.
    """
    if reference.get("uid") != owner["uid"]:
        return False
    version, current = (
        metadata.text(each, "apiVersion").rpartition("/")[2] for each in (reference, owner)
    )
    return rank_version(version) >= rank_version(current)


_OWN_REASONS: Final = frozenset(
    {CANNOT_BE_REMEDIATED, DEFERRED, MACHINE_DELETING, REASON_WAITING_FOR_REMEDIATION}
)


async def write_machine_conditions(
    caches: Caches,
    syncer: MachineSyncer,
    control_plane: ControlPlane,
    summary: ReconcileSummary,
) -> None:
    """Write the Machine conditions that have changed.

    Raises ConflictError if core has changed a Machine since it was read.
    """
    for machine in control_plane.machines:
        present = [*_up_to_date(machine, summary.outdated)]
        present += _owner_remediated(machine, summary.decision.remediation)
        absent = [OWNER_REMEDIATED_CONDITION] if _is_remediation_over(machine) else []
        # Read again: this reconcile may have written the Machine, and the write of conditions fails
        # with an outdated version.
        obj = caches.machines.get(NamespacedName(machine.namespace, machine.name))
        if obj is not None and (present or absent):
            now = times.format_time(control_plane.now)
            await syncer.write_conditions(obj, present, absent, now)


def _up_to_date(
    machine: ControlPlaneMachine, outdated: Mapping[str, tuple[str, ...]]
) -> tuple[Condition, ...]:
    if machine.name not in outdated:
        return ()
    reasons = outdated[machine.name]
    return (
        Condition(
            type=UP_TO_DATE,
            status=not reasons,
            reason="NotUpToDate" if reasons else UP_TO_DATE,
            message="\n".join(f"* {reason}" for reason in reasons),
        ),
    )


def _owner_remediated(
    machine: ControlPlaneMachine, statuses: Mapping[str, RemediationStatus]
) -> tuple[Condition, ...]:
    status = statuses.get(machine.name)
    if status is None:
        return ()
    return (
        Condition(
            type=OWNER_REMEDIATED_CONDITION,
            status=False,
            reason=status.reason,
            message=status.message,
        ),
    )


def _is_remediation_over(machine: ControlPlaneMachine) -> bool:
    """Return whether the Machine has recovered, or its remediation is no longer requested."""
    condition = machine.conditions.get(OWNER_REMEDIATED_CONDITION)
    if condition is None or condition.status != "False":
        return False
    if machine.deleting or needs_remediation(machine):
        return False
    recovered = machine.has_condition(HEALTH_CHECK_SUCCEEDED_CONDITION, "True")
    return recovered or condition.reason in _OWN_REASONS
