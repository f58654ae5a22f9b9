"""Manifest x Provider -> the files to render."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from capsmith.blueprint.manifest import Entry, Scope
from capsmith.errors import BlueprintError
from capsmith.provider.model import Component, Provider, Resource, Role
from capsmith.provider.topology import TOPOLOGY_FLAVOR
from capsmith.safetext import RelativePath, SafeText


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """One file to render: its row, its path, and what the blueprint sees."""

    entry: Entry
    path: RelativePath
    context: Mapping[str, Any]


_Condition = Callable[[Provider, Mapping[str, Any]], bool]


def _role(role: Role) -> _Condition:
    return lambda provider, context: context["resource"].role is role


def _serves(contract: str) -> _Condition:
    return lambda provider, context: any(c.version == contract for c in provider.contracts)


def _feature(role: Role, feature: str) -> _Condition:
    return lambda provider, context: any(
        r.role is role and feature in r.features for r in provider.resources
    )


CONDITIONS: Mapping[str, _Condition] = {
    "credentials": lambda provider, context: provider.credentials is not None,
    "cluster_classes": lambda provider, context: bool(provider.cluster_classes),
    "licence_apache": lambda provider, context: provider.licence == "Apache-2.0",
    "licence_other": lambda provider, context: provider.licence != "Apache-2.0",
    "flavor_topology": lambda provider, context: context["flavor"] == TOPOLOGY_FLAVOR,
    "flavor_other": lambda provider, context: context["flavor"] != TOPOLOGY_FLAVOR,
    "contract_v1beta1": _serves("v1beta1"),
    "contract_v1beta2": _serves("v1beta2"),
    "infra_cluster": _role(Role.INFRA_CLUSTER),
    "infra_machine": _role(Role.INFRA_MACHINE),
    "capacity": _feature(Role.INFRA_MACHINE, "capacity"),
}
"""Conditions that a row may name under ``when``; those on a role need a resource in scope."""


def plan(entries: tuple[Entry, ...], provider: Provider) -> tuple[PlannedFile, ...]:
    """Every file that ``provider`` needs, in the order of the manifest.

    Raises BlueprintError for an unknown condition or a target that leaves the repository.
    """
    return tuple(file for entry in entries for file in _files(entry, provider))


def _files(entry: Entry, provider: Provider) -> Iterator[PlannedFile]:
    for context in _contexts(entry.for_each, provider):
        if all(_holds(name, provider, context, entry) for name in entry.when):
            yield PlannedFile(entry, _target(entry, provider, context), context)


def _holds(name: str, provider: Provider, context: Mapping[str, Any], entry: Entry) -> bool:
    if name not in CONDITIONS:
        raise _broken(entry, f"unknown condition {name}")
    return CONDITIONS[name](provider, context)


def _contexts(scope: Scope, provider: Provider) -> Iterator[dict[str, Any]]:
    if scope is Scope.PROVIDER:
        yield {"provider": provider}
        return
    for component in provider.components:
        base = {"provider": provider, "component": component}
        match scope:
            case Scope.COMPONENT:
                yield base
            case Scope.FLAVOR:
                yield from ({**base, "flavor": flavor} for flavor in provider.flavors)
            case Scope.CLUSTER_CLASS:
                yield from ({**base, "cluster_class": name} for name in provider.cluster_classes)
            case _:
                for resource in _resources(scope, component):
                    yield {
                        **base,
                        "resource": resource,
                        "contract": resource.storage_version.contract,
                    }


def _resources(scope: Scope, component: Component) -> Iterator[Resource]:
    for resource in component.resources:
        identity = resource.role is Role.IDENTITY
        if (
            scope is Scope.RESOURCE
            or (scope is Scope.IDENTITY_RESOURCE and identity)
            or (
                scope is Scope.RECONCILED_RESOURCE
                and not identity
                and not resource.role.is_template
            )
        ):
            yield resource


def _target(entry: Entry, provider: Provider, context: Mapping[str, Any]) -> RelativePath:
    names: dict[str, str] = {"package": provider.package, "provider": provider.name}
    if "component" in context:
        component = context["component"]
        names |= {"config": component.config, "component": component.type}
    if "resource" in context:
        resource = context["resource"]
        names |= {
            "module": resource.module,
            "crd_name": resource.crd_name,
            "group": resource.group,
            "plural": resource.plural,
            "singular": resource.singular,
        }
    names |= {key: context[key] for key in ("flavor", "cluster_class") if key in context}
    assert all(isinstance(name, SafeText) for name in names.values())
    try:
        return RelativePath(entry.target.format_map(names))
    except (KeyError, ValueError, IndexError) as error:
        raise _broken(entry, f"bad target {entry.target}: {error}") from error


def _broken(entry: Entry, message: str) -> BlueprintError:
    return BlueprintError(
        "blueprint-plan",
        message,
        file=f"blueprints/project/{entry.source}",
        hint="Correct the row of this blueprint in blueprints/manifest.yaml.",
    )
