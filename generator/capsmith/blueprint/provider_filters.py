"""Filters that give blueprints the provider's manifests as data, to be printed as literals.

Blueprints contain no logic: ``{{ resource | crd | to_yaml }}`` calls a function of
:mod:`capsmith.output` and prints its result.  To find the function behind a filter, look up its
name in :data:`PROVIDER_FILTERS` below; literal filters are in :mod:`capsmith.blueprint.filters`.

A filter receives the value before the bar as its first argument.  Functions that also need the
runtime library take it from the blueprint's context, so that a blueprint cannot pass another
library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any

from jinja2 import pass_context
from jinja2.runtime import Context

from capsmith.output.clusterctl import build_package_url, identify_hosting, release_url
from capsmith.output.crd import build_contract_labels, build_crd, list_field_paths
from capsmith.output.field_copies import list_function_copies
from capsmith.output.identities import (
    list_fields_of_machines,
    list_identity_users,
    list_kinds_with_ids,
    list_standalone_identities,
)
from capsmith.output.machine_reference import has_usual_reference, place_machine_reference
from capsmith.output.monitoring import build_alert_rules, format_dashboard
from capsmith.output.python_types import (
    find_converted_versions,
    generate_module,
    generate_version_module,
    has_version_functions,
    list_converted_versions,
    list_hub_types,
    needs_hub,
)
from capsmith.output.rbac import (
    Permission,
    aggregate_permissions,
    build_policy_rule,
    list_client_permissions,
    list_editor_permissions,
    list_identity_editor_permissions,
    list_kubeadm_bootstrap_permissions,
    list_manager_permissions,
    list_namespace_permissions,
    list_viewer_permissions,
)
from capsmith.output.reference import find_missing_fields, list_field_rows, list_version_rows
from capsmith.output.relations import draw_relations, list_relations
from capsmith.output.samples import name_credentials, sample_spec
from capsmith.output.slices import list_standalone_resources
from capsmith.output.template_variables import list_template_variables
from capsmith.output.topology import build_topology
from capsmith.output.webhooks import (
    compare_shapes,
    find_contract_version,
    has_admission,
    has_conversion,
    has_migration,
    has_webhooks,
    list_admitted_kinds,
    list_converted_paths,
    list_converted_resources,
    list_migrated_resources,
    needs_webhook_server,
)
from capsmith.output.write_limits import (
    list_absent_fields,
    list_required_in_conditions,
    list_required_status,
    needs_messages,
)
from capsmith.provider.hooks import list_author_classes, list_author_names
from capsmith.provider.model import Component, Provider, Resource, Role
from capsmith.provider.versions import (
    compare_versions,
    find_core_release,
    find_former_kubernetes,
    get_preferred_version,
)
from capsmith.provider_upgrade.changes import list_kind_changes, list_steps
from capsmith.safetext import SafeText


def find_shared_contract_labels(component: Component) -> dict[str, str]:
    """Return the contract labels that all of a component's CRDs share, sorted by key (GEN-01)."""
    labels = [build_contract_labels(resource) for resource in component.resources]
    shared = set(labels[0].items()).intersection(*(set(each.items()) for each in labels))
    return dict(sorted(shared))


def join_for_display(values: Iterable[str]) -> str:
    """Join strings with commas into plain text, which a literal filter must still make safe.

    The core API group, which is the empty string, becomes ``core``.
    """
    return ", ".join(str(value) or "core" for value in values)


def find_kind(provider: Provider, role: str, otherwise: str) -> SafeText:
    """Return the name of the first kind with the given role, or ``otherwise`` if there is none.

    Raises TypeError if ``otherwise`` is not a literal in the blueprint.
    """
    if not isinstance(otherwise, SafeText):
        raise TypeError(f"unsafe text {otherwise!r}")
    found = (resource.kind for resource in provider.resources if resource.role == role)
    return next(found, otherwise)


def has_role(owner: Provider | Component, role: str) -> bool:
    """Return whether a kind of a provider or component has the role.

    Raises ValueError if there is no such role.
    """
    searched = Role(role)
    return any(resource.role is searched for resource in owner.resources)


def list_whole_pools(owner: Provider | Component) -> tuple[Resource, ...]:
    """Return the kinds of machine pools whose machines have no Machines, such as scaling groups."""
    return tuple(pool for pool in _list_pools(owner) if pool.machine_kind is None)


def list_pools_with_machines(owner: Provider | Component) -> tuple[Resource, ...]:
    """Return the kinds of machine pools whose machines have Machines (MP-07)."""
    return tuple(pool for pool in _list_pools(owner) if pool.machine_kind is not None)


def _list_pools(owner: Provider | Component) -> tuple[Resource, ...]:
    return tuple(each for each in owner.resources if each.role is Role.INFRA_MACHINE_POOL)


@pass_context
@wraps(list_manager_permissions)
def _manager_permissions(
    context: Context, provider: Provider, component: Component
) -> tuple[Permission, ...]:
    return list_manager_permissions(provider, component, context["runtime"].permissions)


@pass_context
@wraps(list_client_permissions)
def _client_permissions(context: Context, component: Component) -> tuple[Permission, ...]:
    return list_client_permissions(context["provider"], component, context["runtime"].permissions)


@pass_context
@wraps(list_namespace_permissions)
def _namespace_permissions(
    context: Context, provider: Provider, component: Component
) -> tuple[Permission, ...]:
    return list_namespace_permissions(provider, component, context["runtime"].permissions)


@pass_context
@wraps(aggregate_permissions)
def _aggregate_permissions(context: Context, component: Component) -> tuple[Permission, ...]:
    return aggregate_permissions(context["provider"], component, context["runtime"].permissions)


PROVIDER_FILTERS: Mapping[str, Callable[..., Any]] = {
    # output/crd.py: CustomResourceDefinitions
    "crd": build_crd,
    "field_paths": list_field_paths,
    # output/write_limits.py: schema limits that a manager respects when it writes objects
    "absent_fields": list_absent_fields,
    "needs_messages": needs_messages,
    "required_in_conditions": list_required_in_conditions,
    "required_status": list_required_status,
    # output/webhooks.py: webhooks, and the migration of stored objects
    "admitted_kinds": list_admitted_kinds,
    "has_admission": has_admission,
    "converted_paths": list_converted_paths,
    "converted_resources": list_converted_resources,
    "has_conversion": has_conversion,
    "has_migration": has_migration,
    "has_webhooks": has_webhooks,
    "migrated_resources": list_migrated_resources,
    "serves_webhooks": needs_webhook_server,
    "shape_changes": compare_shapes,
    "version_of_contract": find_contract_version,
    # output/python_types.py: Python modules of kinds and their versions
    "converted_versions": list_converted_versions,
    "fields_of": find_converted_versions,
    "has_version_functions": has_version_functions,
    "hub_types": list_hub_types,
    "python_module": generate_module,
    "uses_hub": needs_hub,
    "version_module": generate_version_module,
    # output/field_copies.py: fields that scaffolds of conversions copy
    "function_copies": list_function_copies,
    # output/rbac/: permissions
    "aggregate_permissions": _aggregate_permissions,
    "client_permissions": _client_permissions,
    "editor_permissions": list_editor_permissions,
    "identity_editor_permissions": list_identity_editor_permissions,
    "kubeadm_bootstrap_permissions": list_kubeadm_bootstrap_permissions,
    "manager_permissions": _manager_permissions,
    "namespace_permissions": _namespace_permissions,
    "policy_rule": build_policy_rule,
    "viewer_permissions": list_viewer_permissions,
    # output/monitoring.py: alerts and the dashboard
    "alert_rules": build_alert_rules,
    "dashboard_text": format_dashboard,
    # output/clusterctl.py: releases
    "hosting": identify_hosting,
    "package_url": build_package_url,
    "release_url": release_url,
    # output/samples.py, output/topology.py, output/slices.py: samples, templates, ClusterClasses
    "credentials_name": name_credentials,
    "sample_spec": sample_spec,
    "standalone_resources": list_standalone_resources,
    "topology": build_topology,
    # output/template_variables.py: variables of cluster templates
    "template_variables": list_template_variables,
    # output/machine_reference.py: references to the infrastructure of Machines
    "has_usual_reference": has_usual_reference,
    "machine_reference": place_machine_reference,
    # output/identities.py: identity kinds, kinds that use identities, and kinds with ids
    "identity_users": list_identity_users,
    "kinds_with_ids": list_kinds_with_ids,
    "shared_fields": list_fields_of_machines,
    "standalone_identities": list_standalone_identities,
    # output/reference.py: tables of the provider's reference
    "field_rows": list_field_rows,
    "missing_fields": find_missing_fields,
    "version_rows": list_version_rows,
    # output/relations.py: references between kinds, and their picture
    "diagram": draw_relations,
    "relations": list_relations,
    # provider/: names, versions and parts of a provider
    "author_classes": list_author_classes,
    "author_names": list_author_names,
    "contract_of": Provider.contract_of,
    "core_release": find_core_release,
    "former_kubernetes": find_former_kubernetes,
    "identity": Provider.identity,
    "part": Component.part,
    "pool_machine": lambda pool, component: component.find_pool_machine(pool),
    "preferred_version": get_preferred_version,
    "version_changes": compare_versions,
    # provider_upgrade/changes.py: the next contract
    "kind_changes": list_kind_changes,
    "upgrade_steps": list_steps,
    # This module: several kinds at a time, and lists for display
    "contract_labels": find_shared_contract_labels,
    "has_role": has_role,
    "kind_of": find_kind,
    "listed": join_for_display,
    "pools_with_machines": list_pools_with_machines,
    "whole_pools": list_whole_pools,
}
"""Functions that blueprints use as filters, by filter name.

By default, a filter is named after its function.  A comment above each group of filters names the
module that defines their functions.
"""
