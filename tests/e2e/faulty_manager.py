"""A generated provider with one fault: `-P -m tests.e2e.faulty_manager FAULT PACKAGE [FLAG]...`.

Each fault replaces one method of the runtime.  `test_conformance_command.py` expects
`capsmith conformance` to name the rule that it violates.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

from capsmith_runtime.contract import constants, metadata
from capsmith_runtime.contract.v1beta2 import V1Beta2Status
from capsmith_runtime.infrastructure import cluster, machine
from capsmith_runtime.infrastructure.api import InfraMachineDeleteScope
from capsmith_runtime.infrastructure.cluster import InfraClusterController
from capsmith_runtime.infrastructure.machine import InfraMachineController
from capsmith_runtime.infrastructure.machine_pool import machines, pool
from capsmith_runtime.kube.client import JSON
from capsmith_runtime.kube.controller import Result
from capsmith_runtime.manager import main
from capsmith_runtime.reconcile import status_reporter
from capsmith_runtime.reconcile.author_step import AuthorStep
from capsmith_runtime.reconcile.patcher import Patcher
from capsmith_runtime.reconcile.results import Waiting
from capsmith_runtime.reconcile.status_reporter import StatusReporter
from tests.e2e.faulty_pools import (
    ignored_pause_of_claims,
    pool_controls_machines,
    pool_ignores_mark,
    pool_unsorted,
    replace,
    unblocked_address,
)

PROVISIONED = {"initialization": {"provisioned": True}}


def provision_without_owner(controller: type) -> None:
    def make(reconcile: Any) -> Any:
        async def faulty(self: Any, key: Any, patcher: Patcher) -> Any:
            result = await reconcile(self, key, patcher)
            if not patcher.obj["metadata"].get("ownerReferences"):
                await patcher.write_status(PROVISIONED, [])
            return result

        return faulty

    replace(controller, "_reconcile", make)


def cluster_without_owner() -> None:
    provision_without_owner(InfraClusterController)


def machine_without_owner() -> None:
    provision_without_owner(InfraMachineController)


def ignore_blocker(reason: str) -> None:
    def make(blocker: Any) -> Any:
        def faulty(cluster: Any, owner: Any, kind: str) -> Waiting | None:
            found: Waiting | None = blocker(cluster, owner, kind)
            return None if found is not None and found.reason == reason else found

        return faulty

    for module in (machine, pool, machines):
        replace(module, "find_core_blocker", make)


def no_wait_for_cluster() -> None:
    ignore_blocker(constants.REASON_WAITING_FOR_INFRASTRUCTURE)


def no_wait_for_data() -> None:
    ignore_blocker(constants.REASON_WAITING_FOR_BOOTSTRAP)


def change_machine_spec(change: Callable[[JSON], JSON]) -> None:
    def make(write: Any) -> Any:
        def faulty(self: Any, obj: Any, facts: Any, features: Any) -> JSON:
            return change(write(self, obj, facts, features))

        return faulty

    replace(V1Beta2Status, "build_machine_spec", make)


def no_provider_id() -> None:
    change_machine_spec(lambda spec: {k: v for k, v in spec.items() if k != "providerID"})


def shared_provider_id() -> None:
    change_machine_spec(lambda spec: {**spec, "providerID": "homelab://same"})
    accept_any_provider_id()


def forgotten_work() -> None:
    """Keep the manager's work in memory only; one machine stays unfinished until the crash."""
    known = set()

    def make(normal: Any) -> Any:
        async def faulty(self: Any, patcher: Patcher, cluster: Any, owner: Any) -> Any:
            uid = patcher.obj["metadata"]["uid"]
            if not metadata.finalizers(patcher.obj):
                known.add(uid)
                await patcher.add_finalizer(self.kind)
            provisioned = (patcher.obj.get("status") or {}).get("initialization")
            interrupted = metadata.name(patcher.obj).endswith("-interrupted")
            if (uid in known and not interrupted) or provisioned:
                return await normal(self, patcher, cluster, owner)
            return Result()

        return faulty

    replace(InfraMachineController, "_reconcile_normal", make)


def accept_any_provider_id() -> None:
    async def faulty(self: Any, patcher: Patcher, provider_id: str) -> None:
        return None

    replace(InfraMachineController, "_check_provider_id", lambda _: faulty)


def changed_spec() -> None:
    change_machine_spec(lambda spec: {**spec, "memoryMiB": 1024})


def no_endpoint() -> None:
    def faulty(self: Any, obj: Any, facts: Any, features: Any) -> JSON:
        return dict(obj.get("spec") or {})

    replace(V1Beta2Status, "build_cluster_spec", lambda _: faulty)


def wrong_failure_domain() -> None:
    def make(write: Any) -> Any:
        def faulty(self: Any, obj: Any, facts: Any, features: Any) -> JSON:
            status: JSON = write(self, obj, facts, features)
            return {**status, "failureDomain": "elsewhere"}

        return faulty

    replace(V1Beta2Status, "build_machine_status", make)


def no_finalizer() -> None:
    async def faulty(self: Any, *arguments: Any, **options: Any) -> None:
        found = metadata.finalizers(self.obj)
        await add(self, *arguments, **options)
        await self._write(metadata={**self.obj["metadata"], "finalizers": list(found)})

    add = Patcher.add_finalizer
    replace(Patcher, "add_finalizer", lambda _: faulty)


def finalizer_stays() -> None:
    async def faulty(self: Any, finalizer: str) -> None:
        return None

    replace(Patcher, "remove_finalizer", lambda _: faulty)


def ignored_pause() -> None:
    replace(status_reporter, "pause_message", lambda _: lambda obj, kind, cluster: "")


def ignored_external_management() -> None:
    replace(cluster, "is_externally_managed", lambda _: lambda obj: False)


def deletion_while_paused() -> None:
    def make(is_paused: Any) -> Any:
        async def faulty(self: Any, patcher: Patcher, cluster: Any) -> bool:
            paused: bool = await is_paused(self, patcher, cluster)
            is_machine = self._kind.resource.kind.endswith("Machine")
            return paused and not (is_machine and metadata.is_deleting(patcher.obj))

        return faulty

    replace(StatusReporter, "ensure_paused_condition", make)


def change_conditions(change: Callable[[list[JSON], JSON], list[JSON]]) -> None:
    """Change the conditions of each write; ``change`` also receives the previous object."""

    def make(write: Any) -> Any:
        async def faulty(self: Any, **parts: JSON) -> None:
            status = parts.get("status")
            if status is not None and "conditions" in status:
                conditions = change(status["conditions"], self.obj)
                parts["status"] = {**status, "conditions": conditions}
            await write(self, **parts)

        return faulty

    replace(Patcher, "_write", make)


def no_ready() -> None:
    change_conditions(lambda entries, _: [each for each in entries if each["type"] != "Ready"])


def no_paused() -> None:
    change_conditions(lambda entries, _: [each for each in entries if each["type"] != "Paused"])


def varying_message() -> None:
    def change(entries: list[JSON], obj: JSON) -> list[JSON]:
        version = obj["metadata"]["resourceVersion"]
        return [
            {**each, "message": f"seen at {version}"} if each["type"] == "Ready" else each
            for each in entries
        ]

    change_conditions(change)


def not_provisioned_while_paused() -> None:
    def make(write: Any) -> Any:
        async def faulty(self: Any, **parts: JSON) -> None:
            status = parts.get("status")
            entries = (status or {}).get("conditions") or []
            paused = any((e["type"], e["status"]) == ("Paused", "True") for e in entries)
            if status is not None and paused:
                parts["status"] = {**status, "initialization": {"provisioned": False}}
            await write(self, **parts)

        return faulty

    replace(Patcher, "_write", make)


def failing_early_deletion() -> None:
    def make(call: Any) -> Any:
        async def faulty(self: Any, patcher: Patcher, hook: Any, scope: Any, expected: Any) -> Any:
            if isinstance(scope, InfraMachineDeleteScope) and scope.provider_id is None:
                raise RuntimeError("there is no machine to delete")
            return await call(self, patcher, hook, scope, expected)

        return faulty

    replace(AuthorStep, "call", make)


FAULTS: dict[str, Callable[[], None]] = {
    each.__name__: each
    for each in (
        cluster_without_owner,
        machine_without_owner,
        no_wait_for_cluster,
        no_wait_for_data,
        no_provider_id,
        shared_provider_id,
        forgotten_work,
        changed_spec,
        no_endpoint,
        wrong_failure_domain,
        no_finalizer,
        finalizer_stays,
        ignored_pause,
        ignored_external_management,
        deletion_while_paused,
        no_ready,
        no_paused,
        varying_message,
        not_provisioned_while_paused,
        failing_early_deletion,
        pool_unsorted,
        pool_controls_machines,
        pool_ignores_mark,
        unblocked_address,
        ignored_pause_of_claims,
    )
}


def run(fault: str, package: str, flags: list[str]) -> int:
    FAULTS[fault]()
    wiring = importlib.import_module(f"{package}._generated.wiring")
    sys.argv = [sys.argv[0], *flags]
    return int(main(wiring.COMPONENTS, wiring.load))


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], sys.argv[2], sys.argv[3:]))
