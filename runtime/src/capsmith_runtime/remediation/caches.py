"""Caches for remediations, with the Machines that they are about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.core import Machine
from capsmith_runtime.infrastructure.caches import InfrastructureCaches
from capsmith_runtime.infrastructure.cluster_dependents import DependentKind
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.reconcile.caches import BY_CLUSTER, cluster_of, owner_uids
from capsmith_runtime.reconcile.kinds import Kind
from capsmith_runtime.remediation.api import RemediationReconciler

RemediationKind = Kind[RemediationReconciler[Any]]


class RemediationCaches:
    """A cache for each kind that implements Remediation."""

    def __init__(
        self, kinds: Sequence[RemediationKind], infrastructure: InfrastructureCaches
    ) -> None:
        self.infrastructure = infrastructure
        core = infrastructure.core
        self.informers = {
            kind.resource.kind: core.informer(
                kind.resource, core.scope.select_own(), {BY_CLUSTER: cluster_of}
            )
            for kind in kinds
        }
        for informer in self.informers.values():
            infrastructure.identity.add_user(informer, is_recorded=True)
        # The garbage collector deletes remediations after their Machines, when core may already be
        # deleting the infrastructure cluster, without which there are no credentials.
        infrastructure.dependents += [
            DependentKind.of_machines(kind, self.informers[kind.resource.kind]) for kind in kinds
        ]

    def find_machine(self, remediation: JSON) -> Machine | None:
        """Return the Machine that a remediation is about, or None if it is not cached.

        It has the remediation's name and owns it (ER-07).
        """
        machine = self.infrastructure.core.machine_of(remediation)
        if machine is None or machine.name != metadata.name(remediation):
            return None
        # By UID: a Machine of the same name that was created later is not the unhealthy one.
        return machine if machine.uid in owner_uids(remediation) else None

    def find_infra_machine(self, machine: Machine | None) -> JSON | None:
        """Return the infrastructure machine that a Machine owns, or None if it is not cached.

        Kinds of other providers are never cached.
        """
        reference = machine.infrastructure if machine is not None else None
        informer = self.infrastructure.machines.get(reference.kind) if reference else None
        if machine is None or reference is None or informer is None:
            return None
        if informer.resource.group != reference.group:
            return None
        obj = informer.get(NamespacedName(machine.namespace, reference.name))
        return obj if obj is not None and machine.uid in owner_uids(obj) else None
