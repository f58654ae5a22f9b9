"""The permissions of a provider, with what the shipped library declares."""

from __future__ import annotations

from capsmith.commands.build import load_runtime_library
from capsmith.output import rbac
from capsmith.output.rbac import Permission
from capsmith.provider.model import Component, Provider
from tests.unit.provider.build import provider


def manager_permissions(provider: Provider, component: Component) -> tuple[Permission, ...]:
    return rbac.list_manager_permissions(provider, component, load_runtime_library().permissions)


def client_permissions(provider: Provider, component: Component) -> tuple[Permission, ...]:
    return rbac.list_client_permissions(provider, component, load_runtime_library().permissions)


def namespace_permissions(provider: Provider, component: Component) -> tuple[Permission, ...]:
    return rbac.list_namespace_permissions(provider, component, load_runtime_library().permissions)


def aggregate_permissions(component: Component) -> tuple[Permission, ...]:
    return rbac.aggregate_permissions(provider(), component, load_runtime_library().permissions)
