"""Plan which files to render for a provider, according to the manifest's rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from functools import cache
from typing import Any, NamedTuple

import yaml

from capsmith.blueprint.provider_filters import list_whole_pools
from capsmith.errors import BlueprintError
from capsmith.output.clusterctl import Hosting, identify_hosting
from capsmith.output.identities import list_identity_users, list_kinds_with_ids
from capsmith.output.python_types import has_version_functions, list_converted_versions
from capsmith.output.rbac import (
    aggregate_permissions,
    list_kubeadm_bootstrap_permissions,
    list_namespace_permissions,
)
from capsmith.output.runtime import Runtime
from capsmith.output.webhooks import (
    has_admission,
    has_conversion,
    has_migration,
    has_webhooks,
    list_admitted_kinds,
    list_converted_resources,
    needs_webhook_server,
)
from capsmith.provider.model import (
    POOL_FLAVOR,
    TOPOLOGY_FLAVOR,
    Component,
    Provider,
    Resource,
    Role,
)
from capsmith.provider_upgrade.changes import list_steps
from capsmith.safetext import RelativePath, SafeText
from capsmith.tree import Owner

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_KEYS = {"source", "target", "for_each", "when", "owner", "executable"}


class BlueprintScope(StrEnum):
    """The type of object for which a blueprint is rendered, once for each such object."""

    PROVIDER = "provider"
    COMPONENT = "component"
    RESOURCE = "resource"
    RECONCILED_RESOURCE = "reconciled_resource"
    """Kinds for which the author writes a reconciler: neither templates nor identities."""
    TYPED_RESOURCE = "typed_resource"
    """Kinds with a generated Python type: those with a reconciler, and identities to which the
    author added fields."""
    IDENTITY_RESOURCE = "identity_resource"
    CONVERTED_VERSION = "converted_version"
    """API versions of kinds whose fields the author's code converts."""
    FLAVOR = "flavor"
    CLUSTER_CLASS = "cluster_class"
    LEGACY_MODULE = "legacy_module"
    """Import paths from capsmith 0.1 that the author's code may still use."""


class BlueprintEntry(NamedTuple):
    """A row in ``blueprints/manifest.yaml``: one blueprint, and the files to render from it."""

    source: str
    """Path under ``blueprints/project/``, ending in ``.jinja``."""
    target: str
    """Path in the provider's repository, as a format string: ``{config}/crd/{crd_name}.yaml``."""
    for_each: BlueprintScope
    when: tuple[str, ...]
    """Names in :data:`CONDITIONS`. The file is rendered only if all of them are true."""
    owner: Owner
    executable: bool


@cache
def load_manifest(text: str, file: str) -> tuple[BlueprintEntry, ...]:
    """Parse a blueprint manifest. ``file`` is the name to use in errors.

    Raises BlueprintError unless it is YAML: a list of rows with known keys and unique pairs of
    source and target.
    """
    try:
        rows = yaml.load(text, Loader=_LOADER)
    # PyYAML's constructors raise the others for a value that does not have the form of its tag.
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError) as error:
        mark = getattr(error, "problem_mark", None)
        message = f"invalid YAML: {getattr(error, 'problem', None) or error}"
        raise _bad_manifest(file, message, mark.line + 1 if mark else 0) from error
    if not isinstance(rows, list):
        raise _bad_manifest(file, "it must be a list of rows")
    entries = tuple(_read_row(row, file) for row in rows)
    seen: set[tuple[str, str]] = set()
    for entry in entries:
        if (entry.source, entry.target) in seen:
            raise _bad_manifest(file, f"duplicate row {entry.source} -> {entry.target}")
        seen.add((entry.source, entry.target))
    return entries


def _read_row(row: Any, file: str) -> BlueprintEntry:
    if not isinstance(row, dict) or not {"source", "owner"} <= row.keys() <= _KEYS:
        raise _bad_manifest(
            file, f"a row requires source and owner, and allows {sorted(_KEYS)}: {row!r}"
        )
    source = str(row["source"])
    if not source.endswith(".jinja"):
        raise _bad_manifest(file, f"{source} does not end in .jinja")
    when = row.get("when", [])
    try:
        return BlueprintEntry(
            source=source,
            target=str(row.get("target", source.removesuffix(".jinja"))),
            for_each=BlueprintScope(row.get("for_each", BlueprintScope.PROVIDER)),
            when=(when,) if isinstance(when, str) else tuple(when),
            owner=Owner(row["owner"]),
            executable=bool(row.get("executable", False)),
        )
    except ValueError as error:
        raise _bad_manifest(file, f"{source}: {error}") from error


def _bad_manifest(file: str, message: str, line: int = 0) -> BlueprintError:
    hint = "Correct the manifest of the blueprints."
    return BlueprintError("blueprint-manifest", message, file=file, line=line, hint=hint)


class PlannedFile(NamedTuple):
    """A file to render: its row in the manifest, its path, and the context for the blueprint."""

    entry: BlueprintEntry
    path: RelativePath
    context: Mapping[str, Any]


_Condition = Callable[[Provider, Mapping[str, Any]], bool]


def _role(*roles: Role) -> _Condition:
    return lambda provider, context: context["resource"].role in roles


def _any_role(role: Role) -> _Condition:
    return lambda provider, context: any(r.role is role for r in provider.resources)


def _component(type: str) -> _Condition:
    return lambda provider, context: type in context["component"].types


def _has(*types: str) -> _Condition:
    return lambda provider, context: any(provider.component(type) for type in types)


def _follows(contract: str) -> _Condition:
    """Return a condition on the newest contract, as controllers use no other."""
    return lambda provider, context: provider.contracts[0].version == contract


def _feature(role: Role, feature: str) -> _Condition:
    return lambda provider, context: any(
        r.role is role and feature in r.features for r in provider.resources
    )


def _is_pool(resource: Resource, *, ranges: bool) -> bool:
    return resource.role in _POOLS and ("ranges" in resource.features) is ranges


_POOLS = (Role.IP_POOL, Role.GLOBAL_IP_POOL)
_MANAGED = "externalManagedControlPlane"
_hosts = _feature(Role.CONTROL_PLANE, _MANAGED)


def _simulates_infrastructure(provider: Provider, context: Mapping[str, Any]) -> bool:
    """Return whether any kind's scaffold uses the simulated cloud for more than control planes."""
    return provider.component("infrastructure") is not None or any(
        resource.role is Role.RESOURCE for resource in provider.resources
    )


def _has_members(provider: Provider, context: Mapping[str, Any]) -> bool:
    """Return whether the provider has control planes that consist of Machines."""
    return any(
        resource.role is Role.CONTROL_PLANE and _MANAGED not in resource.features
        for resource in provider.resources
    )


def _has_identities(component: Component) -> bool:
    return any(each.role is Role.IDENTITY for each in component.resources)


def _has_policies(component: Component) -> bool:
    needs = (component.immutable_templates, list_kinds_with_ids(component))
    return any(needs) or bool(list_identity_users(component))


CONDITIONS: Mapping[str, _Condition] = {
    "credentials": lambda provider, context: provider.credentials is not None,
    "cluster_classes": lambda provider, context: bool(provider.cluster_classes),
    "on_github": lambda provider, context: identify_hosting(provider.repository) is Hosting.GITHUB,
    "licence_apache": lambda provider, context: provider.licence == "Apache-2.0",
    "licence_other": lambda provider, context: provider.licence != "Apache-2.0",
    "flavor_topology": lambda provider, context: context["flavor"] == TOPOLOGY_FLAVOR,
    "flavor_other": lambda provider, context: context["flavor"] != TOPOLOGY_FLAVOR,
    "contract_v1beta1": _follows("v1beta1"),
    "contract_v1beta2": _follows("v1beta2"),
    "contract_upgraded": lambda provider, context: bool(list_steps(provider)),
    "component_infrastructure": _component("infrastructure"),
    "component_beside": lambda provider, context: context["component"].type != "infrastructure",
    "component_bootstrap": _component("bootstrap"),
    "component_control_plane": _component("control-plane"),
    "component_ipam": _component("ipam"),
    "component_runtime_extension": _component("runtime-extension"),
    "component_addon": _component("addon"),
    "has_kinds": lambda provider, context: bool(context["component"].resources),
    "has_identities": lambda provider, context: _has_identities(context["component"]),
    "keeps_identities": lambda provider, context: bool(list_identity_users(context["component"])),
    "has_ids": lambda provider, context: bool(list_kinds_with_ids(context["component"])),
    "has_policies": lambda provider, context: _has_policies(context["component"]),
    "has_immutable_templates": lambda provider, context: bool(
        context["component"].immutable_templates
    ),
    "has_namespace_role": lambda provider, context: bool(
        list_namespace_permissions(provider, context["component"], context["runtime"].permissions)
    ),
    "has_aggregate": lambda provider, context: bool(
        aggregate_permissions(provider, context["component"], context["runtime"].permissions)
    ),
    "has_control_planes": lambda provider, context: bool(
        list_kubeadm_bootstrap_permissions(context["component"])
    ),
    "has_settings": lambda provider, context: provider.manager.has_settings,
    "has_health_checks": lambda provider, context: provider.manager.health_checks,
    "has_cloud": lambda provider, context: (
        _simulates_infrastructure(provider, context) or _hosts(provider, context)
    ),
    "simulates_infrastructure": _simulates_infrastructure,
    "has_e2e": lambda provider, context: provider.e2e,
    "has_topology_flavor": lambda provider, context: TOPOLOGY_FLAVOR in provider.flavors,
    "has_pool_flavor": lambda provider, context: POOL_FLAVOR in provider.flavors,
    "has_sdk": lambda provider, context: provider.sdk is not None,
    "has_infrastructure": _has("infrastructure"),
    "has_bootstrap": _has("bootstrap"),
    "has_control_plane": _has("control-plane"),
    "has_ipam": _has("ipam"),
    "has_runtime_extension": _has("runtime-extension"),
    "has_addon": _has("addon"),
    "has_conversion": lambda provider, context: has_conversion(provider),
    "has_admission": lambda provider, context: has_admission(provider),
    "admits": lambda provider, context: bool(list_admitted_kinds(context["component"])),
    "has_admission_webhooks": lambda provider, context: context["resource"].webhooks is not None,
    "has_version_functions": lambda provider, context: has_version_functions(provider),
    "calls_functions": lambda provider, context: bool(context["converted"].functions),
    "has_migration": lambda provider, context: has_migration(provider),
    "converts": lambda provider, context: bool(
        list_converted_resources(context["component"], provider)
    ),
    "serves_webhooks": lambda provider, context: needs_webhook_server(
        context["component"], provider
    ),
    "has_webhooks": lambda provider, context: has_webhooks(provider),
    "infra_cluster": _role(Role.INFRA_CLUSTER),
    "infra_machine": _role(Role.INFRA_MACHINE),
    "infra_machine_pool": _role(Role.INFRA_MACHINE_POOL),
    "bootstrap_config": _role(Role.BOOTSTRAP_CONFIG),
    # Machines that join another provider's control plane, and Machines that may be its members.
    "only_joins": lambda provider, context: (
        _hosts(provider, context) and not _has_members(provider, context)
    ),
    "may_initialise": lambda provider, context: (
        _has_members(provider, context) or not _hosts(provider, context)
    ),
    "control_plane": _role(Role.CONTROL_PLANE),
    "ip_pool": _role(Role.IP_POOL, Role.GLOBAL_IP_POOL),
    "range_pool": lambda provider, context: _is_pool(context["resource"], ranges=True),
    "external_pool": lambda provider, context: _is_pool(context["resource"], ranges=False),
    "external_pools": lambda provider, context: any(
        _is_pool(resource, ranges=False) for resource in provider.resources
    ),
    "addon": _role(Role.ADDON),
    "addons": _any_role(Role.ADDON),
    "remediation": _role(Role.REMEDIATION),
    "further_resource": _role(Role.RESOURCE),
    "managed": lambda provider, context: _MANAGED in context["resource"].features,
    "machine_based": lambda provider, context: _MANAGED not in context["resource"].features,
    "capacity": _feature(Role.INFRA_MACHINE, "capacity"),
    "machine_pools": _any_role(Role.INFRA_MACHINE_POOL),
    "whole_pools": lambda provider, context: bool(list_whole_pools(provider)),
    "pool_machines": lambda provider, context: context["resource"].machine_kind is not None,
    "pool_whole": lambda provider, context: context["resource"].machine_kind is None,
    "managed_control_plane": _hosts,
    "machine_control_plane": _has_members,
}
"""Conditions that a row may name under ``when``.

A condition on a role requires a resource with that role in the row's scope. A condition on a
component requires at least one matching component.
"""


def plan_files(
    entries: tuple[BlueprintEntry, ...], provider: Provider, runtime: Runtime
) -> tuple[PlannedFile, ...]:
    """Return every file that ``provider`` needs, in manifest order.

    Raises BlueprintError for an unknown condition or a target outside the repository.
    """
    return tuple(file for entry in entries for file in plan_entry(entry, provider, runtime))


def plan_entry(
    entry: BlueprintEntry, provider: Provider, runtime: Runtime
) -> Iterator[PlannedFile]:
    """Yield one row's files: one for each object in its scope that meets the row's conditions.

    Raises the same errors as :func:`plan_files`.
    """
    for context in _contexts(entry.for_each, provider, runtime):
        if all(_holds(name, provider, context, entry) for name in entry.when):
            yield PlannedFile(entry, _target(entry, provider, context), context)


def _holds(
    name: str, provider: Provider, context: Mapping[str, Any], entry: BlueprintEntry
) -> bool:
    if name not in CONDITIONS:
        raise _broken(entry, f"unknown condition {name}")
    try:
        return CONDITIONS[name](provider, context)
    except KeyError as error:
        message = (
            f"the condition {name} requires a {error.args[0]}, which `for_each` does not provide"
        )
        raise _broken(entry, message) from error


def _contexts(
    scope: BlueprintScope, provider: Provider, runtime: Runtime
) -> Iterator[dict[str, Any]]:
    common = {"provider": provider, "runtime": runtime}
    if scope is BlueprintScope.PROVIDER:
        yield common
        return
    if scope is BlueprintScope.LEGACY_MODULE:
        yield from ({**common, "legacy": each} for each in runtime.legacy)
        return
    for component in provider.components:
        base = {**common, "component": component}
        # clusterctl requests templates and classes only from infrastructure providers (CC-70).
        templates = component.type == "infrastructure"
        match scope:
            case BlueprintScope.COMPONENT:
                yield base
            case BlueprintScope.FLAVOR:
                yield from ({**base, "flavor": each} for each in provider.flavors if templates)
            case BlueprintScope.CLUSTER_CLASS:
                classes = provider.cluster_classes if templates else ()
                yield from ({**base, "cluster_class": name} for name in classes)
            case BlueprintScope.CONVERTED_VERSION:
                for converted in list_converted_versions(component):
                    yield {**base, "resource": converted.resource, "converted": converted}
            case _:
                for resource in _resources(scope, component):
                    yield {
                        **base,
                        "resource": resource,
                        "contract": resource.storage_version.contract,
                    }


def _resources(scope: BlueprintScope, component: Component) -> Iterator[Resource]:
    for resource in component.resources:
        identity = resource.role is Role.IDENTITY
        if (
            scope is BlueprintScope.RESOURCE
            or (scope is BlueprintScope.IDENTITY_RESOURCE and identity)
            or (scope is BlueprintScope.TYPED_RESOURCE and identity and resource.spec_fields)
            or (
                scope in (BlueprintScope.RECONCILED_RESOURCE, BlueprintScope.TYPED_RESOURCE)
                and not identity
                and not resource.role.is_template
            )
        ):
            yield resource


def _target(entry: BlueprintEntry, provider: Provider, context: Mapping[str, Any]) -> RelativePath:
    names: dict[str, str] = {"package": provider.package, "provider": provider.name}
    if "component" in context:
        component = context["component"]
        names |= {
            "config": component.config,
            "component": component.attribute,
            "type": component.type,
        }
    if "resource" in context:
        resource = context["resource"]
        names |= {
            "module": resource.module,
            "crd_name": resource.crd_name,
            "group": resource.group,
            "plural": resource.plural,
            "singular": resource.singular,
        }
    if "converted" in context:
        names["version_module"] = context["converted"].module
    names |= {key: context[key] for key in ("flavor", "cluster_class") if key in context}
    if "legacy" in context:
        names["legacy"] = context["legacy"].module
    # Paths are built from these names, so an unchecked name could leave the repository.
    assert all(isinstance(name, SafeText) for name in names.values())
    try:
        return RelativePath(entry.target.format_map(names))
    except (KeyError, ValueError, IndexError) as error:
        raise _broken(entry, f"bad target {entry.target}: {error}") from error


def _broken(entry: BlueprintEntry, message: str) -> BlueprintError:
    return BlueprintError(
        "blueprint-plan",
        message,
        file=f"blueprints/project/{entry.source}",
        hint="Correct the row of this blueprint in blueprints/manifest.yaml.",
    )
