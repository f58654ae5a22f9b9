"""The controllers of all kinds that implement Remediation, and their watches.

A change to a Machine enqueues its remediation. A Cluster that is paused, resumed, created or
deleted enqueues the remediations of its Machines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from capsmith_runtime.contract import constants, metadata
from capsmith_runtime.contract.core import Cluster, Machine, is_deleted_for_move
from capsmith_runtime.infrastructure.api import InfraMachineView
from capsmith_runtime.infrastructure.cluster_machines import create_machine_view
from capsmith_runtime.infrastructure.context import InfrastructureContext
from capsmith_runtime.infrastructure.prerequisites import ClusterInfrastructure
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.kube.controller import Result
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.reconcile.author_step import AuthorStep, check_result
from capsmith_runtime.reconcile.caches import BY_CLUSTER, cluster_name_of
from capsmith_runtime.reconcile.groups import ControllerGroup, Queues, Reconcile
from capsmith_runtime.reconcile.patcher import Patcher
from capsmith_runtime.reconcile.results import Deleted, State, Waiting
from capsmith_runtime.reconcile.runner import ReconcileRunner
from capsmith_runtime.reconcile.status_reporter import StatusReporter, limit_message
from capsmith_runtime.reconcile.watches import enqueue_object, on_change
from capsmith_runtime.remediation.api import (
    RemediationDeleteScope,
    RemediationFailed,
    RemediationScope,
    RemediationState,
)
from capsmith_runtime.remediation.caches import RemediationCaches, RemediationKind
from capsmith_runtime.remediation.machine_conditions import MachineConditions

_REASON_MACHINE_NOT_FOUND: Final = "MachineNotFound"
_REASON_INFRA_MACHINE_NOT_FOUND: Final = "InfraMachineNotFound"
_REASON_MACHINE_DELETING: Final = "MachineDeleting"
_UNMARKED_SECONDS: Final = 5.0
"""Seconds until the conditions of a Machine are written that core has not marked unhealthy yet."""


class RemediationController:
    """Reconciles one kind of remediation."""

    def __init__(
        self, kind: RemediationKind, remediations: RemediationCaches, context: InfrastructureContext
    ) -> None:
        self.kind = kind
        self._remediations = remediations
        self._context = context
        self._caches = context.caches
        self._machines = MachineConditions(context.client, context.caches.core.reader.version)
        self._reporter = StatusReporter(kind, context)
        self._author = AuthorStep(kind, context, self._reporter)
        informer = remediations.informers[kind.resource.kind]
        self._runner = ReconcileRunner(
            kind,
            informer,
            context,
            self._reporter,
            new_patcher=partial(Patcher, context.client, informer, context.writer),
            forget=self._forget,
        )

    async def reconcile(self, key: NamespacedName) -> Result:
        """Reconcile a remediation.

        Failures are reported in its conditions.
        """
        return await self._runner.run(key, self._reconcile)

    async def _reconcile(self, key: NamespacedName, patcher: Patcher) -> Result:
        if is_deleted_for_move(patcher.obj):
            return Result()
        machine = self._remediations.find_machine(patcher.obj)
        name = machine.cluster_name if machine is not None else cluster_name_of(patcher.obj)
        if metadata.is_deleting(patcher.obj):
            return await self._reconcile_delete(key, patcher, machine, name)
        cluster = self._caches.core.cluster(key.namespace, name)
        if await self._reporter.ensure_paused_condition(patcher, cluster):
            return Result()
        infra_machine = self._remediations.find_infra_machine(machine)
        if machine is None or cluster is None or infra_machine is None:
            waiting = _describe_missing(patcher.obj, machine, cluster)
            return await self._reporter.report_wait(patcher, waiting)
        blocker = _find_blocker(machine) or self._caches.held_ids.find_taken(infra_machine)
        if blocker is not None:
            return await self._reporter.report_wait(patcher, blocker)
        return await self._reconcile_normal(patcher, cluster, machine, infra_machine)

    async def _reconcile_normal(
        self, patcher: Patcher, cluster: Cluster, machine: Machine, infra_machine: JSON
    ) -> Result:
        # The remediation may outlive the objects that name the identity.
        record = self._caches.identity_record(infra_machine, cluster)
        await patcher.add_finalizer(self.kind, further=record)
        spec = await self._author.decode_spec(patcher)
        if spec is None:
            return Result()
        infrastructure = await ClusterInfrastructure.of(
            self._caches,
            self._context.credentials,
            cluster.namespace,
            cluster,
            user=infra_machine,
        )
        credentials = infrastructure.ready_credentials
        if isinstance(credentials, Waiting):
            return await self._reporter.report_wait(patcher, credentials)
        scope = RemediationScope(
            **self._author.scope_fields(patcher.obj),
            spec=spec,
            cluster=cluster,
            machine=machine,
            infra_machine=create_machine_view(self._context, infra_machine),
            infra_cluster=infrastructure.infra_cluster,
            credentials=credentials,
        )
        hook = self._author.reconciler.reconcile_normal
        result = await self._author.call_checked(patcher, hook, scope, partial(_check_result, hook))
        if isinstance(result, Waiting):
            return await self._reporter.report_wait(patcher, result)
        if isinstance(result, RemediationFailed):
            return await self._fail(patcher, machine, result)
        requeue = await self._report(patcher, result)
        is_shown = await self._machines.show_state(machine, result)
        return requeue if is_shown else _requeue_sooner(requeue)

    async def _fail(self, patcher: Patcher, machine: Machine, failed: RemediationFailed) -> Result:
        """Report a remediation that failed, and leave the Machine to its owner."""
        ready, reason = constants.READY_CONDITION, failed.reason
        if not patcher.shows(ready, status="False", reason=reason):
            self._context.events.warn(patcher.obj, reason, limit_message(failed.message))
        state = State(ready=False, reason=reason, message=failed.message, status=failed.status)
        # The own status first: it tells why, even if core keeps the Machine from being written.
        requeue = await self._report(patcher, state)
        is_shown = await self._machines.show_failure(machine, failed)
        return requeue if is_shown else _requeue_sooner(requeue)

    async def _report(self, patcher: Patcher, state: State) -> Result:
        status = self._reporter.author_status(patcher, state.status)
        return await self._reporter.report_state(patcher, status, state)

    async def _reconcile_delete(
        self, key: NamespacedName, patcher: Patcher, machine: Machine | None, name: str | None
    ) -> Result:
        if self.kind.finalizer not in metadata.finalizers(patcher.obj):
            return self._forget(key)
        # Read live, because a pause that the cache does not contain yet must stop the deletion
        # (SM-01).
        cluster = await self._caches.core.live_cluster(key.namespace, name)
        if await self._reporter.ensure_paused_condition(patcher, cluster):
            return Result()
        infra_machine = self._remediations.find_infra_machine(machine)
        infrastructure = await ClusterInfrastructure.of(
            self._caches,
            self._context.credentials,
            key.namespace,
            cluster,
            name,
            infra_machine or patcher.obj,
        )
        scope = RemediationDeleteScope(
            **self._author.delete_scope_fields(patcher.obj),
            _credentials=infrastructure.credentials,
            cluster=cluster,
            machine=machine,
            infra_machine=self._view(infra_machine),
            infra_cluster=infrastructure.infra_cluster,
        )
        hook = self._author.reconciler.reconcile_delete
        result = await self._author.call(patcher, hook, scope, Deleted)
        if isinstance(result, Waiting):
            return await self._reporter.report_wait(patcher, result)
        if machine is not None and not machine.deleting:
            await self._machines.remove(machine)
        await self._reporter.remove_finalizer(patcher)
        return self._forget(key)

    def _view(self, infra_machine: JSON | None) -> InfraMachineView | None:
        """Return the view of an infrastructure machine, or None if it holds another object's ids.

        What was begun for such a machine was begun for the server of the ids' holder: never by this
        controller.
        """
        if infra_machine is None or self._caches.held_ids.find_taken(infra_machine) is not None:
            return None
        return create_machine_view(self._context, infra_machine)

    def _forget(self, key: NamespacedName) -> Result:
        self._reporter.forget(key)
        self._author.forget(key)
        return Result()


def _describe_missing(obj: JSON, machine: Machine | None, cluster: Cluster | None) -> Waiting:
    """Return the Waiting of a remediation that lacks its Machine, Cluster or infrastructure."""
    name = metadata.name(obj)
    if machine is None:
        message = f"no Machine {name} owns this object: core creates one for an unhealthy Machine"
        return Waiting(_REASON_MACHINE_NOT_FOUND, message, None)
    if cluster is None:
        message = f"Cluster {machine.cluster_name} does not exist"
        return Waiting(constants.REASON_CLUSTER_NOT_FOUND, message, None)
    message = f"the infrastructure of Machine {name} does not exist, or is another provider's"
    return Waiting(_REASON_INFRA_MACHINE_NOT_FOUND, message)


def _requeue_sooner(result: Result) -> Result:
    """Return a result with a requeue soon, when core may have written the Machine."""
    if result.requeue_after is None:
        return Result(_UNMARKED_SECONDS)
    return Result(min(result.requeue_after, _UNMARKED_SECONDS))


def _find_blocker(machine: Machine) -> Waiting | None:
    if not machine.deleting:
        return None
    message = f"Machine {machine.name} is being deleted"
    return Waiting(_REASON_MACHINE_DELETING, message, None)


def _check_result(
    hook: Callable[..., object], result: object
) -> RemediationState | RemediationFailed | Waiting:
    if isinstance(result, RemediationFailed):
        return result
    return check_result(hook, result, RemediationState)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemediationControllers:
    """Factory for the remediation controllers of an infrastructure provider."""

    kinds: tuple[RemediationKind, ...]

    def __call__(self, context: InfrastructureContext) -> ControllerGroup:
        """Create the controllers for one manager."""
        return RemediationGroup(self.kinds, context)


class RemediationGroup(ControllerGroup):
    """A controller for each kind of remediation."""

    def __init__(self, kinds: Sequence[RemediationKind], context: InfrastructureContext) -> None:
        self._kinds = kinds
        self._context = context
        self._caches = RemediationCaches(kinds, context.caches)
        self._queues: Queues = {}

    @property
    def informers(self) -> Sequence[Informer]:
        """Return the informers for all kinds of remediations."""
        return tuple(self._caches.informers.values())

    def reconcilers(self) -> Iterator[tuple[str, Reconcile]]:
        """Yield each kind's name and reconcile function."""
        for kind in self._kinds:
            controller = RemediationController(kind, self._caches, self._context)
            yield kind.resource.kind, controller.reconcile

    def setup_watches(self, queues: Queues) -> None:
        """Watch remediations, their Machines and their Clusters."""
        self._queues = queues
        for kind, informer in self._caches.informers.items():
            informer.add_handler(enqueue_object(queues[kind]), own_writes=False)
        core = self._context.caches.core
        core.machines.add_handler(on_change(core.reader.read_machine, self._enqueue_of_machine))
        core.clusters.add_handler(on_change(_cluster_view, self._enqueue_of_cluster))

    def _enqueue_of_machine(self, machine: JSON) -> None:
        key = NamespacedName(metadata.namespace(machine), metadata.name(machine))
        for kind, informer in self._caches.informers.items():
            # Few Machines have a remediation.
            if informer.get(key) is not None:
                self._queues[kind].add(key)

    def _enqueue_of_cluster(self, cluster: JSON) -> None:
        value = f"{metadata.namespace(cluster)}/{metadata.name(cluster)}"
        for kind, informer in self._caches.informers.items():
            for key in informer.keys_by_index(BY_CLUSTER, value):
                self._queues[kind].add(key)


def _cluster_view(obj: JSON) -> tuple[bool, bool]:
    return metadata.lookup(obj, "spec", "paused") is True, metadata.is_deleting(obj)
