"""The kit's environment of add-ons, with reconcilers that tests control."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from capsmith_runtime.addon import controllers
from capsmith_runtime.addon.addons import AddonKind
from capsmith_runtime.addon.api import (
    AddonDeleteScope,
    AddonReconciler,
    AddonScope,
    AddonState,
    Workload,
)
from capsmith_runtime.addon.controllers import AddonControllers
from capsmith_runtime.component import Component
from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.kube.client import JSON, ResourceType
from capsmith_runtime.reconcile.results import Deleted, Waiting
from capsmith_runtime.testing.addon import WorkloadObjects
from capsmith_runtime.testing.addon.environment import NAMESPACE, SELECTED, AddonEnvironment
from capsmith_runtime.testing.provider import ProviderUnderTest

__all__ = ["NAMESPACE", "SELECTED", "ScriptedEnvironment", "remembered", "serve"]

OBJECT = ResourceType("", "v1", "ConfigMap", "configmaps")


class ScriptedAddons(AddonReconciler[Any]):
    """Install one object per cluster, and remember the calls."""

    def __init__(self, calls: list[tuple[str, str, str]], failing: set[str]) -> None:
        self.calls = calls
        self.failing = failing

    def reconcile_normal(
        self, addon: AddonScope[Any], cluster: Cluster, workload: Workload
    ) -> AddonState | Waiting:
        """Apply the object."""
        self.calls.append(("normal", addon.name, cluster.name))
        if cluster.name in self.failing:
            raise RuntimeError("no such chart")
        workload.apply(OBJECT, _installed(addon.name))
        return AddonState()

    async def reconcile_delete(
        self, addon: AddonDeleteScope[Any], cluster: Cluster, workload: Workload
    ) -> Deleted | Waiting:
        """Delete the object."""
        self.calls.append(("delete", addon.name, cluster.name))
        await workload.delete_async(OBJECT, addon.name, "kube-system")
        return Deleted()


def _installed(name: str) -> JSON:
    metadata = {"namespace": "kube-system", "name": name}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {}}


class _Objects:
    """Reports the objects of the scripted add-ons."""

    def __init__(self, folder: Path) -> None: ...

    def start(self, monkeypatch: pytest.MonkeyPatch) -> None: ...

    def installed(self, cluster: str, objects: WorkloadObjects) -> list[str]:
        return [obj["metadata"]["name"] for obj in objects.all()]


class ScriptedEnvironment(AddonEnvironment):
    """One management cluster with add-ons whose reconciler remembers its calls."""

    def __init__(
        self,
        provider: ProviderUnderTest,
        component: Component,
        core_version: str,
        *,
        kind: AddonKind,
        patch: pytest.MonkeyPatch,
    ) -> None:
        calls: list[tuple[str, str, str]] = []
        failing: set[str] = set()

        class Scripted(ScriptedAddons):
            def __init__(self) -> None:
                super().__init__(calls, failing)

        scripted = serve(component, replace(kind, reconciler=Scripted), alone=True)
        super().__init__(
            provider, scripted, core_version, kind=kind, double=_Objects(Path()), patch=patch
        )
        self.calls, self.failing = calls, failing
        patch.setattr(controllers, "STATUS_SECONDS", 0.01)

    def has(self, cluster: str, addon: str = "a1") -> bool:
        """Report whether an add-on is installed on a cluster."""
        return addon in self.on(cluster)

    async def installed(self, key: Any, *clusters: str) -> None:
        """Wait until the add-on is on exactly these clusters, and the status reports it."""
        wanted = dict.fromkeys(clusters, (True, "Ready"))

        def is_installed() -> bool:
            found = {each for each in self.workloads.objects if self.has(each, key.name)}
            return self.clusters(key) == wanted and found == set(clusters)

        await self.eventually(f"{key.name} is on {clusters}, and nowhere else", is_installed)
        await self.quiet()


def serve(component: Component, kind: AddonKind, *, alone: bool = False) -> Component:
    """Return the component with this kind of add-ons, and no other groups if it is ``alone``."""
    others = (each for each in component.groups if not isinstance(each, AddonControllers))
    return replace(component, groups=(*(() if alone else others), AddonControllers([kind])))


def remembered(obj: JSON, group: str) -> Collection[str]:
    """Return the clusters that an add-on records as possibly having it."""
    text = obj["metadata"].get("annotations", {}).get(f"{group}/installed-on", "")
    return list(filter(None, text.split(",")))
