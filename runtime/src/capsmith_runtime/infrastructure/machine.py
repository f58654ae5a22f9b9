"""Controller for infrastructure machines: their prerequisites (IM-19) and deletion (IM-25).

A machine without problems takes three writes: the finalizer together with the external id, the
provider id, and the status. If the session factory returns an account, recording it takes a fourth
write. The account is recorded when nothing is left to wait for, so that an identity can be
corrected until something may have been created.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from capsmith_runtime.api.serialization import encode_status
from capsmith_runtime.contract import constants, metadata
from capsmith_runtime.contract.core import Cluster, Machine, is_deleted_for_move
from capsmith_runtime.contract.status_writer import MachineFacts, build_addresses, set_or_drop
from capsmith_runtime.infrastructure.api import (
    ClaimedAddress,
    InfraMachineDeleteScope,
    InfraMachineScope,
    InfraMachineState,
    create_owner_reference,
)
from capsmith_runtime.infrastructure.cluster_machines import is_control_plane
from capsmith_runtime.infrastructure.context import InfrastructureContext
from capsmith_runtime.infrastructure.kinds import InfraMachineKind
from capsmith_runtime.infrastructure.prerequisites import (
    ClusterInfrastructure,
    create_bootstrap_reader,
    find_core_blocker,
)
from capsmith_runtime.infrastructure.terminations import TerminatedMachines
from capsmith_runtime.infrastructure.workload_client import create_workload_client
from capsmith_runtime.kube.client import JSON, NamespacedName, key_of
from capsmith_runtime.kube.controller import Result
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.reconcile.author_step import AuthorStep, check_result
from capsmith_runtime.reconcile.caches import cluster_name_of
from capsmith_runtime.reconcile.patcher import Patcher
from capsmith_runtime.reconcile.results import Deleted, Terminated, Waiting
from capsmith_runtime.reconcile.runner import ReconcileRunner
from capsmith_runtime.reconcile.sessions import Credentials
from capsmith_runtime.reconcile.status_reporter import StatusReporter

FAILURE_DOMAIN_MISMATCH: Final = "FailureDomainMismatch"


class InfraMachineController:
    """Reconciles one kind of infrastructure machine."""

    def __init__(
        self, kind: InfraMachineKind, informer: Informer, context: InfrastructureContext
    ) -> None:
        self.kind = kind
        self._context = context
        self._caches = context.caches
        self._reporter = StatusReporter(
            kind,
            context,
            has_failure_fields=lambda _: True,
            is_provisioned=context.writer.is_provisioned,
        )
        self._author = AuthorStep(kind, context, self._reporter, has_account=True)
        self._terminated = TerminatedMachines(
            kind, self._caches, context.terminations, context.events, self._reporter
        )
        self._runner = ReconcileRunner(
            kind,
            informer,
            context,
            self._reporter,
            new_patcher=partial(Patcher, context.client, informer, context.writer),
            forget=self._forget,
        )

    async def reconcile(self, key: NamespacedName) -> Result:
        """Reconcile a machine.

        Failures are reported in its conditions.
        """
        return await self._runner.run(key, self._reconcile)

    async def _reconcile(self, key: NamespacedName, patcher: Patcher) -> Result:
        if is_deleted_for_move(patcher.obj):
            return Result()
        machine = self._caches.machine_of(patcher.obj)
        if metadata.is_deleting(patcher.obj):
            return await self._reconcile_delete(key, patcher, machine)
        name = machine.cluster_name if machine is not None else None
        cluster = self._caches.core.cluster(key.namespace, name)
        # Without owners there is nothing to do yet; events for the owners enqueue this object.
        if machine is None or cluster is None:
            return Result()
        if await self._reporter.ensure_paused_condition(patcher, cluster):
            return Result()
        return await self._reconcile_normal(patcher, cluster, machine)

    async def _reconcile_normal(
        self, patcher: Patcher, cluster: Cluster, machine: Machine
    ) -> Result:
        # Before anything is created: after a crash, it must be found by this id (SM-08, SM-09).
        record = self._caches.identity_record(patcher.obj, cluster)
        await patcher.add_finalizer(self.kind, further=record)
        blocker = self._caches.held_ids.find_taken(patcher.obj) or find_core_blocker(
            cluster, machine, constants.MACHINE_KIND
        )
        if blocker is not None:
            return await self._reporter.report_blocker(patcher, blocker)
        spec = await self._author.decode_spec(patcher)
        if spec is None:
            return Result()
        infrastructure = await ClusterInfrastructure.of(
            self._caches,
            self._context.credentials,
            cluster.namespace,
            cluster,
            user=patcher.obj,
        )
        credentials = infrastructure.ready_credentials
        if isinstance(credentials, Waiting):
            return await self._reporter.report_blocker(patcher, credentials)
        # After all other prerequisites: a machine that cannot be created yet must not use up
        # addresses.
        addresses = await self._caches.addresses_of(patcher.obj, cluster)
        if isinstance(addresses, Waiting):
            return await self._reporter.report_blocker(patcher, addresses)
        scope = self._scope(
            patcher.obj, spec, cluster, machine, infrastructure, credentials, addresses
        )
        hook = self._author.reconciler.reconcile_normal
        state = await self._author.call_checked(patcher, hook, scope, partial(_check_state, hook))
        if isinstance(state, Terminated):
            return await self._terminated.handle(patcher, cluster, state)
        self._terminated.forget(key_of(patcher.obj))
        if isinstance(state, Waiting):
            return await self._wait(patcher, state)
        return await self._write_state(patcher, machine, state)

    async def _write_state(
        self, patcher: Patcher, machine: Machine, state: InfraMachineState
    ) -> Result:
        """Write the spec's provider id before the status, which makes core read it (IM-02)."""
        # Before the first write, so that a provider id that is rejected reaches neither spec nor
        # status.
        await self._check_provider_id(patcher, state.provider_id)
        self._warn_of_failure_domain(patcher.obj, machine.failure_domain, state.failure_domain)
        facts = MachineFacts(
            provider_id=state.provider_id,
            addresses=state.addresses,
            failure_domain=state.failure_domain,
            interruptible=state.interruptible,
            extra=encode_status(state.status),
        )
        writer, features = self._context.writer, self.kind.features
        spec = writer.build_machine_spec(patcher.obj, facts, features)
        await patcher.write_spec(spec, state.conditions)
        status = writer.build_machine_status(patcher.obj, facts, features)
        return await self._reporter.report_state(patcher, status, state)

    async def _reconcile_delete(
        self, key: NamespacedName, patcher: Patcher, machine: Machine | None
    ) -> Result:
        # Without the finalizer nothing was created for this object, or its infrastructure is
        # already gone.
        if self.kind.finalizer not in metadata.finalizers(patcher.obj):
            return self._forget(key)
        self._terminated.forget(key)
        name = machine.cluster_name if machine is not None else cluster_name_of(patcher.obj)
        # Read live, because a pause that the cache does not contain yet must stop the deletion
        # (SM-01).
        cluster = await self._caches.core.live_cluster(key.namespace, name)
        if await self._reporter.ensure_paused_condition(patcher, cluster):
            return Result()
        # An object with a copied id must not delete the server of the id's holder.
        taken = self._caches.held_ids.find_taken(patcher.obj)
        if taken is not None:
            return await self._wait(patcher, taken)
        scope = await self._delete_scope(patcher.obj, cluster, machine, name)
        hook = self._author.reconciler.reconcile_delete
        result = await self._author.call(patcher, hook, scope, Deleted)
        if isinstance(result, Waiting):
            return await self._wait(patcher, result)
        await self._reporter.remove_finalizer(patcher)
        return self._forget(key)

    async def _wait(self, patcher: Patcher, waiting: Waiting) -> Result:
        """Write the partial results in ``waiting``, and return when to reconcile again."""
        await self._reporter.check_partial_results(
            patcher, waiting, frozenset({"provider_id", "addresses"})
        )
        if waiting.provider_id is not None:
            await self._check_provider_id(patcher, waiting.provider_id)
            await patcher.write_spec(
                {**metadata.mapping(patcher.obj, "spec"), "providerID": waiting.provider_id}
            )
        status = self._reporter.author_status(patcher, waiting.status)
        if waiting.addresses is not None and "addresses" in self.kind.features:
            set_or_drop(status, "addresses", build_addresses(waiting.addresses))
        return await self._reporter.report_wait(patcher, waiting, status)

    async def _check_provider_id(self, patcher: Patcher, provider_id: str) -> None:
        """Reject a provider id that differs from the recorded one.

        A different id would belong to another server (IM-01).
        """
        before = _provider_id(patcher.obj)
        if before is not None and before != provider_id:
            await self._reporter.refuse(
                patcher,
                constants.REASON_PROVIDER_ID_CHANGED,
                f"the provider id was {before} and must not change, but now is {provider_id}",
            )

    def _warn_of_failure_domain(self, obj: JSON, required: str | None, actual: str | None) -> None:
        """Send an event if the machine is newly reported in another failure domain (IM-06).

        The machine works, so its Ready condition does not change; the object has the actual domain.
        """
        if "failureDomain" not in self.kind.features or not required or not actual:
            return
        # In the spec under contract v1beta1.  A domain that is already reported was right when the
        # machine was created, or has had its event.
        reported = (metadata.text(obj, part, "failureDomain") for part in ("spec", "status"))
        if actual != required and actual not in reported:
            note = f"it is in failure domain {actual}, but its Machine requires {required}"
            self._context.events.warn(obj, FAILURE_DOMAIN_MISMATCH, note)

    def _forget(self, key: NamespacedName) -> Result:
        self._reporter.forget(key)
        self._author.forget(key)
        self._terminated.forget(key)
        return Result()

    def _scope(
        self,
        obj: JSON,
        spec: Any,
        cluster: Cluster,
        machine: Machine,
        infrastructure: ClusterInfrastructure,
        credentials: Credentials,
        addresses: tuple[ClaimedAddress, ...],
    ) -> InfraMachineScope[Any]:
        return InfraMachineScope(
            **self._author.scope_fields(obj),
            _reference=create_owner_reference(self.kind.resource, obj),
            workload_client=create_workload_client(self.kind, cluster, self._context.workload),
            spec=spec,
            cluster=cluster,
            machine=machine,
            infra_cluster=infrastructure.infra_cluster,
            provider_id=_provider_id(obj),
            failure_domain=machine.failure_domain,
            is_control_plane=machine.is_control_plane,
            credentials=credentials,
            is_provisioned=self._context.writer.is_provisioned(obj),
            ip_addresses=addresses,
            _bootstrap=create_bootstrap_reader(self._context.client, machine),
            _loop=asyncio.get_running_loop(),
        )

    async def _delete_scope(
        self, obj: JSON, cluster: Cluster | None, machine: Machine | None, name: str | None
    ) -> InfraMachineDeleteScope[Any]:
        """Return the scope for ``reconcile_delete``.

        ``name`` is the Cluster's name, used if the Cluster itself is gone.
        """
        infrastructure = await ClusterInfrastructure.of(
            self._caches, self._context.credentials, metadata.namespace(obj), cluster, name, obj
        )
        return InfraMachineDeleteScope(
            **self._author.delete_scope_fields(obj),
            workload_client=create_workload_client(self.kind, cluster, self._context.workload),
            _credentials=infrastructure.credentials,
            cluster=cluster,
            machine=machine,
            infra_cluster=infrastructure.infra_cluster,
            provider_id=_provider_id(obj),
            is_control_plane=is_control_plane(self._caches, obj),
        )


def _check_state(
    hook: Callable[..., object], result: object
) -> InfraMachineState | Terminated | Waiting:
    if isinstance(result, Terminated):
        return result
    return check_result(hook, result, InfraMachineState)


def _provider_id(obj: JSON) -> str | None:
    return metadata.text(obj, "spec", "providerID") or None
