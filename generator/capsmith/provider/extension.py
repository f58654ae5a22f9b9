"""The hooks of a runtime extension: from provider.yaml and contract data to what is generated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from capsmith.contract.hooks import HookFamily
from capsmith.contract.model import Contract
from capsmith.provider.model import Component, Hook
from capsmith.provider.naming import kebab, snake
from capsmith.safetext import DnsLabel, Identifier, SafeText

if TYPE_CHECKING:
    from capsmith.spec.model import ProviderSpec
    from capsmith.spec.sections import HookSpec

SERVICE = "webhook"
"""Name of the Service in front of an extension, before the namespace is put before it (CC-31)."""
_TIMEOUT_SECONDS = 10
"""What core takes unless it is told otherwise (RX-04)."""

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
"""Hook -> what the author's method is given, and what it returns."""
_EXPORTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "topology": {
        "answers": ("VariableDefinition",),
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
        "answers": ("Proceed", "RetryAfter", "UpgradePlan"),
        "lifecycle": (
            "AfterUpgradeRequest",
            "BeforeUpgradeRequest",
            "ClusterRequest",
            "UpgradePlanRequest",
        ),
        "variables": ("TopologyCluster", "Variables"),
    },
    "in_place": {
        "answers": ("InPlace", "Proceed", "RetryAfter"),
        "in_place": (
            "CanUpdateMachineRequest",
            "CanUpdateMachineSetRequest",
            "MachineObjects",
            "UpdateMachineRequest",
        ),
    },
}
"""Module -> the classes that its authors need, by the module that they stand in."""


def hooks(spec: ProviderSpec, contract: Contract) -> tuple[Hook, ...]:
    """The hooks that the author has named, in that order."""
    given = spec.runtime_extension.hooks if spec.runtime_extension else ()
    return tuple(
        _hook(each, None, contract) if isinstance(each, str) else _hook(each.hook, each, contract)
        for each in given
    )


def handler_name(hook: str, given: HookSpec | None) -> str:
    """What ClusterClasses call a hook: ``generate-patches`` unless the author says otherwise."""
    return (given.name if given else None) or kebab(hook)


def author_classes(component: Component) -> dict[SafeText, list[Identifier]]:
    """What the hooks of a component are written with: module of ``extension`` -> its classes."""
    found: dict[str, set[str]] = {"answers": {"HookError"}}
    for module in {str(hook.module) for hook in component.hooks}:
        for where, names in _EXPORTS[module].items():
            found.setdefault(where, set()).update(names)
    return {
        SafeText(where): [Identifier(name) for name in sorted(names)]
        for where, names in sorted(found.items())
    }


def author_names(component: Component) -> list[Identifier]:
    """All of them, and the class that the author's own is made from, in order."""
    names = {name for classes in author_classes(component).values() for name in classes}
    return sorted({*names, Identifier("RuntimeExtension")})


def _hook(name: str, given: HookSpec | None, contract: Contract) -> Hook:
    known = contract.hooks[name]
    method = snake(name)
    request, answer = _CLASSES[name]
    return Hook(
        hook=Identifier(name),
        name=DnsLabel(handler_name(name, given)),
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
