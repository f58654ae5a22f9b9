"""A provider with scripted remediations, with the manifests of the example everything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import pytest

from capsmith_runtime.infrastructure import Deleted, Waiting
from capsmith_runtime.kube.client import JSON, NamespacedName, ResourceType
from capsmith_runtime.remediation import (
    RemediationDeleteScope,
    RemediationFailed,
    RemediationReconciler,
    RemediationScope,
    RemediationState,
)
from capsmith_runtime.remediation.caches import RemediationKind
from capsmith_runtime.remediation.controllers import RemediationControllers
from capsmith_runtime.testing.conformance.remediation.base import RemediationConformance
from capsmith_runtime.testing.provider import ProviderUnderTest
from capsmith_runtime.testing.remediation.environment import RemediationEnvironment
from tests.runtime.infrastructure.scripted_provider import NoInfrastructure
from tests.runtime.resource import scripted_resources
from tests.runtime.resource.scripted_resources import GROUP, REPOSITORY, ClusterReconciler

REMEDIATION = "NimbusRemediation"


@dataclass(frozen=True, slots=True, kw_only=True)
class RemediationSpec:
    timeout_seconds: int = field(default=600, metadata={"json": "timeoutSeconds"})


class ScriptedReconciler(RemediationReconciler[RemediationSpec]):
    """Remediations are what the functions of the test return."""

    normal: ClassVar[Callable[[RemediationScope[Any]], Any]]
    delete: ClassVar[Callable[[RemediationDeleteScope[Any]], Any]]
    calls: ClassVar[list[RemediationScope[Any]]] = []
    deletions: ClassVar[list[RemediationDeleteScope[Any]]] = []

    def reconcile_normal(
        self, remediation: RemediationScope[RemediationSpec]
    ) -> RemediationState | RemediationFailed | Waiting:
        self.calls.append(remediation)
        result: RemediationState | RemediationFailed | Waiting = type(self).normal(remediation)
        return result

    def reconcile_delete(
        self, remediation: RemediationDeleteScope[RemediationSpec]
    ) -> Deleted | Waiting:
        self.deletions.append(remediation)
        result: Deleted | Waiting = type(self).delete(remediation)
        return result


REMEDIATIONS = RemediationKind(
    resource=ResourceType(GROUP, "v1beta1", REMEDIATION, "nimbusremediations"),
    finalizer=f"nimbusremediation.{GROUP}",
    features=frozenset(),
    spec=RemediationSpec,
    reconciler=ScriptedReconciler,
)
CONTROLLERS = replace(
    scripted_resources.CONTROLLERS, additional=(RemediationControllers(kinds=(REMEDIATIONS,)),)
)
COMPONENT = replace(scripted_resources.COMPONENT, groups=(CONTROLLERS,))
PROVIDER = ProviderUnderTest(
    components={"infrastructure": COMPONENT},
    repository=REPOSITORY,
    infrastructure=NoInfrastructure,
)


@pytest.fixture(autouse=True)
def scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the default behaviour; tests replace it."""
    deleted = staticmethod(lambda scope: Deleted())
    for reconciler in (ScriptedReconciler, ClusterReconciler):
        monkeypatch.setattr(reconciler, "delete", deleted, raising=False)
        monkeypatch.setattr(reconciler, "calls", [])
    script(monkeypatch, lambda scope: RemediationState())
    monkeypatch.setattr(ScriptedReconciler, "deletions", [])


def script(monkeypatch: pytest.MonkeyPatch, function: Any) -> None:
    """Let ``reconcile_normal`` do what ``function`` does."""
    monkeypatch.setattr(ScriptedReconciler, "normal", staticmethod(function), raising=False)


class ScriptedConformance(RemediationConformance):
    """Base class for tests with scripted remediations."""


def condition_of(env: RemediationEnvironment, key: NamespacedName, name: str) -> JSON:
    """Return a condition of a Machine, or an empty mapping if it has none."""
    status = env.core_machine(key).get("status") or {}
    found = (each for each in status.get("conditions", ()) if each["type"] == name)
    return next(found, {})
