"""Pools of machines: what machines get from them, their flavors and classes, and what they may."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from capsmith.commands.load import load
from capsmith.output.crd import build_status_schema
from capsmith.output.explain import explain_resolution
from capsmith.output.python_types import generate_module
from capsmith.output.topology import build_topology
from capsmith.provider.model import Component, Provider, Resource, Role
from tests.unit.provider.permissions import aggregate_permissions, manager_permissions

EXAMPLE = Path(__file__).parents[3] / "examples" / "pools" / "provider.yaml"
CORE = "cluster.x-k8s.io"


@cache
def provider() -> Provider:
    found = load(EXAMPLE).provider
    assert found is not None
    return found


@pytest.fixture
def component() -> Component:
    return provider().components[0]


def pools(component: Component) -> tuple[Resource, Resource]:
    """Return the pool without Machines and the pool with Machines."""
    whole, machines = component.role(Role.INFRA_MACHINE_POOL)
    return whole, machines


def without(component: Component, *gone: Resource) -> Component:
    kinds = {name for each in gone for name in (str(each.kind), f"{each.kind}Template")}
    kept = tuple(resource for resource in component.resources if resource.kind not in kinds)
    return component._replace(resources=kept)


def verbs(component: Component, group: str, plural: str) -> set[str]:
    return {
        verb
        for permission in manager_permissions(provider(), component)
        if group in permission.groups and plural in permission.resources
        for verb in permission.verbs
    }


def test_machines_get_the_fields_that_they_share_with_their_pool(component: Component) -> None:
    whole, machines = pools(component)
    assert whole.machine_kind is None
    assert component.find_pool_machine(machines).kind == "TidalMachine"
    assert component.list_shared_fields(machines) == ("size", "image", "diskGiB")


def test_each_machine_of_a_pool_may_have_status_fields(component: Component) -> None:
    """Proves: MP-06."""
    whole, machines = pools(component)
    schemas = [build_status_schema(each, each.storage_version) for each in (whole, machines)]
    own, others = (
        set((schema or {})["properties"]["instances"]["items"]["properties"]) for schema in schemas
    )
    assert own - others == {"conditions", "spot", "zone"}
    assert [str(each.name) for each in generate_module(whole).classes] == [
        "TidalMachinePoolSpec",
        "TidalMachinePoolInstanceStatus",
    ]
    explained = explain_resolution(provider())["components"][0]["resources"]
    found = {each["kind"]: each["ownFields"] for each in explained}
    assert found["TidalMachinePool"]["instanceStatus"].keys() == {"spot", "zone"}
    assert "instanceStatus" not in found["TidalNodePool"]


def test_only_pools_with_machines_delete_machines(component: Component) -> None:
    """Proves: MP-12."""
    whole, machines = pools(component)
    assert "delete" in verbs(component, CORE, "machines")
    bare = without(component, machines)
    assert verbs(bare, CORE, "machines") == {"list", "watch"}
    assert not {"create", "delete"} & verbs(bare, str(whole.group), "tidalmachines")
    assert {"create", "delete"} <= verbs(component, str(whole.group), "tidalmachines")


def test_only_whole_pools_watch_secrets(component: Component) -> None:
    """Proves: MP-19."""
    whole, _ = pools(component)
    assert verbs(component, "", "secrets") == {"get", "list", "watch"}
    assert verbs(without(component, whole), "", "secrets") == {"get"}


def test_the_number_is_written_to_machine_pools_only_where_there_are_pools(
    component: Component,
) -> None:
    """Proves: MP-17."""
    assert verbs(component, CORE, "machinepools") == {"list", "watch", "patch"}
    assert verbs(without(component, *pools(component)), CORE, "machinepools") == set()


def test_core_may_do_what_it_does_with_pools_and_their_templates(component: Component) -> None:
    """Proves: RB-03."""
    everything = {"create", "delete", "get", "list", "patch", "update", "watch"}
    for plural in ("tidalmachinepools", "tidalnodepooltemplates"):
        (permission,) = (
            each for each in aggregate_permissions(component) if plural in each.resources
        )
        assert set(permission.verbs) == everything


def test_each_kind_of_pools_has_a_flavor_and_a_class(component: Component) -> None:
    flavors = ["topology", "machinepool", "machinepool-tidalnodepool"]
    assert list(provider().flavors) == flavors
    chosen = [
        build_topology(component, provider(), flavor=flavor).pool for flavor in ["", *flavors]
    ]
    kinds = [pool.object.kind if pool else None for pool in chosen]
    assert kinds == [None, None, "TidalMachinePool", "TidalNodePool"]
    parts = build_topology(component, provider(), cluster_class="tidal")
    assert [pool.template and pool.template.kind for pool in parts.pools] == [
        "TidalMachinePoolTemplate",
        "TidalNodePoolTemplate",
    ]


def test_variables_of_machines_are_those_of_pools_where_they_mean_the_same(
    component: Component,
) -> None:
    parts = build_topology(component, provider(), cluster_class="tidal")
    for pool in parts.pools:
        assert [each.name for each in parts.pool_variables(pool)] == ["size", "image"]
    whole, _ = parts.pools
    fields = tuple(
        field._replace(schema={"type": "integer"}) if field.name == "size" else field
        for field in whole.object.spec_fields
    )
    other = whole._replace(object=whole.object._replace(spec_fields=fields))
    assert [each.name for each in parts.pool_variables(other)] == ["image"]


def test_a_flavor_without_pools_is_one_like_any_other(component: Component) -> None:
    bare = without(component, *pools(component))
    other = provider()._replace(components=(bare,))
    assert build_topology(bare, other, flavor="machinepool").pool is None
