"""Filters that give blueprints the provider's manifests as data; literal filters print them.

Blueprints contain no logic: ``{{ resource | crd | to_yaml }}`` calls a function of
:mod:`capsmith.output` and prints its result.  To find the function behind a filter, look up its
name in :data:`PROVIDER_FILTERS` below; literal filters are in :mod:`capsmith.blueprint.filters`.

A filter receives the value before the bar as its first argument.  Functions that also need the
runtime library take it from the context of the blueprint: a blueprint cannot pass another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any

from jinja2 import pass_context
from jinja2.runtime import Context

from capsmith.output.admission import admitted_kinds, has_admission
from capsmith.output.clusterctl import hosting, package_url, release_url, template_variables
from capsmith.output.conversion import (
    converted_resources,
    has_conversion,
    has_migration,
    has_webhooks,
    migrated_resources,
    serves_webhooks,
    shape_changes,
    version_of_contract,
)
from capsmith.output.crd import (
    contract_labels,
    custom_resource_definition,
    needs_messages,
    required_status,
)
from capsmith.output.monitoring import alert_rules, dashboard_text
from capsmith.output.python_types import python_module
from capsmith.output.rbac import (
    Permission,
    aggregate_permissions,
    client_permissions,
    editor_permissions,
    identity_editor_permissions,
    kubeadm_bootstrap_permissions,
    manager_permissions,
    namespace_permissions,
    policy_rule,
    viewer_permissions,
)
from capsmith.output.reference import field_rows, missing_fields, version_rows
from capsmith.output.slices import standalone_resources
from capsmith.output.topology import (
    credentials_name,
    sample_spec,
    topology,
)
from capsmith.output.version_types import (
    converted_versions,
    fields_of,
    has_version_functions,
    hub_types,
    uses_hub,
    version_module,
)
from capsmith.provider.extension import author_classes, author_names
from capsmith.provider.model import Component, Provider
from capsmith.provider.versions import preferred_version, version_changes
from capsmith.provider_upgrade.changes import kind_changes, steps
from capsmith.safetext import SafeText


def find_shared_contract_labels(component: Component) -> dict[str, str]:
    """Return the contract labels that all CRDs of a component share (GEN-01)."""
    labels = [contract_labels(resource) for resource in component.resources]
    shared = set(labels[0].items()).intersection(*(set(each.items()) for each in labels))
    return dict(sorted(shared))


def join_for_display(values: Iterable[str]) -> str:
    """Return texts for display, with commas; still unsafe.  The core API group is ``core``."""
    return ", ".join(str(value) or "core" for value in values)


def find_kind(provider: Provider, role: str, otherwise: str) -> SafeText:
    """Return the first kind of a role, or ``otherwise`` if there is none.

    Raises TypeError if ``otherwise`` is not the blueprint's own text.
    """
    if not isinstance(otherwise, SafeText):
        raise TypeError(f"unsafe text {otherwise!r}")
    found = (resource.kind for resource in provider.resources if resource.role == role)
    return next(found, otherwise)


@pass_context
@wraps(manager_permissions)
def _manager_permissions(
    context: Context, provider: Provider, component: Component
) -> tuple[Permission, ...]:
    return manager_permissions(provider, component, context["runtime"].permissions)


@pass_context
@wraps(client_permissions)
def _client_permissions(context: Context, component: Component) -> tuple[Permission, ...]:
    return client_permissions(context["provider"], component, context["runtime"].permissions)


@pass_context
@wraps(namespace_permissions)
def _namespace_permissions(
    context: Context, provider: Provider, component: Component
) -> tuple[Permission, ...]:
    return namespace_permissions(provider, component, context["runtime"].permissions)


@pass_context
@wraps(aggregate_permissions)
def _aggregate_permissions(context: Context, component: Component) -> tuple[Permission, ...]:
    return aggregate_permissions(context["provider"], component, context["runtime"].permissions)


PROVIDER_FILTERS: Mapping[str, Callable[..., Any]] = {
    # output/crd.py: CustomResourceDefinitions
    "crd": custom_resource_definition,
    "needs_messages": needs_messages,
    "required_status": required_status,
    # output/admission.py, output/conversion.py: webhooks, and the migration of stored objects
    "admitted_kinds": admitted_kinds,
    "has_admission": has_admission,
    "converted_resources": converted_resources,
    "has_conversion": has_conversion,
    "has_migration": has_migration,
    "has_webhooks": has_webhooks,
    "migrated_resources": migrated_resources,
    "serves_webhooks": serves_webhooks,
    "shape_changes": shape_changes,
    "version_of_contract": version_of_contract,
    # output/version_types.py, output/python_types.py: Python modules of kinds and their versions
    "converted_versions": converted_versions,
    "fields_of": fields_of,
    "has_version_functions": has_version_functions,
    "hub_types": hub_types,
    "python_module": python_module,
    "uses_hub": uses_hub,
    "version_module": version_module,
    # output/rbac/: permissions
    "aggregate_permissions": _aggregate_permissions,
    "client_permissions": _client_permissions,
    "editor_permissions": editor_permissions,
    "identity_editor_permissions": identity_editor_permissions,
    "kubeadm_bootstrap_permissions": kubeadm_bootstrap_permissions,
    "manager_permissions": _manager_permissions,
    "namespace_permissions": _namespace_permissions,
    "policy_rule": policy_rule,
    "viewer_permissions": viewer_permissions,
    # output/monitoring.py: alerts and the dashboard
    "alert_rules": alert_rules,
    "dashboard_text": dashboard_text,
    # output/clusterctl.py: releases, and variables of cluster templates
    "hosting": hosting,
    "package_url": package_url,
    "release_url": release_url,
    "template_variables": template_variables,
    # output/topology.py, output/slices.py: samples, cluster templates and ClusterClasses
    "credentials_name": credentials_name,
    "sample_spec": sample_spec,
    "standalone_resources": standalone_resources,
    "topology": topology,
    # output/reference.py: tables of the provider's reference
    "field_rows": field_rows,
    "missing_fields": missing_fields,
    "version_rows": version_rows,
    # provider/: names, versions and parts of a provider
    "author_classes": author_classes,
    "author_names": author_names,
    "contract_of": Provider.contract_of,
    "identity": Provider.identity,
    "part": Component.part,
    "pool_machine": lambda pool, component: component.find_pool_machine(pool),
    "preferred_version": preferred_version,
    "shared_fields": lambda pool, component: component.list_shared_fields(pool),
    "version_changes": version_changes,
    # provider_upgrade/changes.py: the next contract
    "kind_changes": kind_changes,
    "upgrade_steps": steps,
    # This module: several kinds at a time, and lists for display
    "contract_labels": find_shared_contract_labels,
    "kind_of": find_kind,
    "listed": join_for_display,
}
"""Each filter by its name in blueprints.

A filter has the name of its function, except where the two differ below.  The comments name the
module of the functions that follow.
"""
