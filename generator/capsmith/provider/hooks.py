"""Build a runtime extension's hooks from provider.yaml and contract data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from capsmith.contract.model import Contract, HookFamily
from capsmith.provider.model import Component, Hook
from capsmith.provider.naming import snake
from capsmith.safetext import DnsLabel, Identifier, SafeText

if TYPE_CHECKING:
    from capsmith.provider.draft import DraftHook

SERVICE = "webhook"
"""Name of the extension's Service, before the namespace prefix is added (CC-31)."""
_TIMEOUT_SECONDS = 10
"""Default hook timeout in core, in seconds (RX-04)."""

_MODULES = {
    HookFamily.TOPOLOGY: "topology",
    HookFamily.LIFECYCLE: "lifecycle",
    HookFamily.UPGRADE_PLAN: "lifecycle",
    HookFamily.IN_PLACE: "in_place",
}
_DECISION = "Proceed | RetryAfter"
_CLASSES: Mapping[str, tuple[str, str]] = {
    "GeneratePatches": ("GeneratePatchesRequest", "Patches"),
    "ValidateTopology": ("ValidateTopologyRequest", "Sequence[str]"),
    "DiscoverVariables": ("DiscoverVariablesRequest", "Sequence[VariableDefinition]"),
    "BeforeClusterCreate": ("ClusterRequest", _DECISION),
    "AfterControlPlaneInitialized": ("ClusterRequest", "Proceed"),
    "BeforeClusterUpgrade": ("BeforeUpgradeRequest", _DECISION),
    "BeforeControlPlaneUpgrade": ("BeforeUpgradeRequest", _DECISION),
    "AfterControlPlaneUpgrade": ("AfterUpgradeRequest", _DECISION),
    "BeforeWorkersUpgrade": ("BeforeUpgradeRequest", _DECISION),
    "AfterWorkersUpgrade": ("AfterUpgradeRequest", _DECISION),
    "AfterClusterUpgrade": ("AfterUpgradeRequest", _DECISION),
    "BeforeClusterDelete": ("ClusterRequest", _DECISION),
    "GenerateUpgradePlan": ("UpgradePlanRequest", "UpgradePlan"),
    "CanUpdateMachine": ("CanUpdateMachineRequest", "InPlace"),
    "CanUpdateMachineSet": ("CanUpdateMachineSetRequest", "InPlace"),
    "UpdateMachine": ("UpdateMachineRequest", _DECISION),
}
"""Hook name -> parameter and return types in the author's code."""
_EXPORTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "topology": {
        "responses": ("VariableDefinition",),
        "topology": (
            "DiscoverVariablesRequest",
            "GeneratePatchesRequest",
            "Holder",
            "Patches",
            "Template",
            "ValidateTopologyRequest",
        ),
        "variables": ("Variables",),
    },
    "lifecycle": {
        "responses": ("Proceed", "RetryAfter", "UpgradePlan"),
        "lifecycle": (
            "AfterUpgradeRequest",
            "BeforeUpgradeRequest",
            "ClusterRequest",
            "UpgradePlanRequest",
        ),
        "variables": ("TopologyCluster", "Variables"),
    },
    "in_place": {
        "responses": ("InPlace", "Proceed", "RetryAfter"),
        "in_place": (
            "CanUpdateMachineRequest",
            "CanUpdateMachineSetRequest",
            "MachineObjects",
            "UpdateMachineRequest",
        ),
    },
}
"""Module for authors -> classes that it exports, by the module that defines them."""


def build_hooks(hooks: Iterable[DraftHook], contract: Contract) -> tuple[Hook, ...]:
    """Build a runtime extension's hooks, in the author's order."""
    return tuple(_hook(each, contract) for each in hooks)


def list_author_classes(component: Component) -> dict[SafeText, list[Identifier]]:
    """Return the classes that a component's hooks use, keyed by their module in ``extension``."""
    found: dict[str, set[str]] = {"responses": {"HookError"}}
    for module in {str(hook.module) for hook in component.hooks}:
        for where, names in _EXPORTS[module].items():
            found.setdefault(where, set()).update(names)
    return {
        SafeText(where): [Identifier(name) for name in sorted(names)]
        for where, names in sorted(found.items())
    }


def list_author_names(component: Component) -> list[Identifier]:
    """Return the sorted names that the author's module must import, including the base class."""
    names = {name for classes in list_author_classes(component).values() for name in classes}
    return sorted({*names, Identifier("RuntimeExtension")})


def _hook(draft: DraftHook, contract: Contract) -> Hook:
    given = draft.spec
    known = contract.hooks[draft.hook]
    method = snake(draft.hook)
    request, answer = _CLASSES[draft.hook]
    return Hook(
        hook=Identifier(draft.hook),
        name=DnsLabel(draft.name),
        method=Identifier(method),
        constant=Identifier(method.upper()),
        module=Identifier(_MODULES[known.family]),
        request=Identifier(request),
        answer=SafeText(answer),
        timeout_seconds=(given.timeout_seconds if given else None) or _TIMEOUT_SECONDS,
        ignore_failures=bool(given and given.failure_policy == "Ignore"),
        since=known.since,
        statement=known.statement,
    )
