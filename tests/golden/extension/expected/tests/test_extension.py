"""Unit tests of the runtime extension; they need neither core nor an API server."""

from __future__ import annotations

import base64
import json

import pytest
from capsmith_runtime.extension import DiscoverVariablesRequest, HookError, Proceed, RetryAfter
from capsmith_runtime.testing import extension as testing

from cluster_api_provider_beacon.extension import HOLD, Extension


def test_variable_is_copied_into_templates_of_workers() -> None:
    values = {"size": "large"}
    template = testing.worker_template(
        "AnyMachineTemplate", {"size": "small"}, workerMachine=values
    )
    (item,) = Extension().generate_patches(testing.generate_patches(template)).items()

    assert item["uid"] == template.uid
    assert json.loads(base64.b64decode(item["patch"])) == [
        {"op": "replace", "path": "/spec/template/spec/size", "value": "large"}
    ]


def test_templates_stay_the_same_without_the_variable() -> None:
    template = testing.worker_template("AnyMachineTemplate", {"size": "small"})

    assert Extension().generate_patches(testing.generate_patches(template)).items() == []


def test_fields_of_the_infrastructure_provider_are_rejected() -> None:
    def problems(**values: str) -> list[str]:
        template = testing.worker_template("AnyMachineTemplate", {}, workerMachine=values)
        return list(Extension().validate_topology(testing.validate_topology(template)))

    assert problems(size="large") == []
    assert "providerID" in problems(providerID="any://1")[0]


def test_variable_names_are_unique() -> None:
    found = Extension().discover_variables(DiscoverVariablesRequest(settings={}))

    assert len({variable.name for variable in found}) == len(found)


def test_cluster_can_be_held_at_before_cluster_create() -> None:
    held = testing.topology_cluster(annotations={f"{HOLD}/before-cluster-create": ""})
    free = testing.topology_cluster()

    result = Extension().before_cluster_create(testing.cluster_request(held))
    assert isinstance(result, RetryAfter)
    assert Extension().before_cluster_create(testing.cluster_request(free)) == Proceed()


def test_cluster_can_be_held_at_before_cluster_delete() -> None:
    held = testing.topology_cluster(annotations={f"{HOLD}/last-words": ""})
    free = testing.topology_cluster()

    result = Extension().before_cluster_delete(testing.cluster_request(held))
    assert isinstance(result, RetryAfter)
    assert Extension().before_cluster_delete(testing.cluster_request(free)) == Proceed()


def test_upgrade_skips_no_minor_version() -> None:
    request = testing.upgrade_plan("v1.31.4", "v1.34.1")

    plan = Extension().generate_upgrade_plan(request)
    assert plan.control_plane == ["v1.32.0", "v1.33.0", "v1.34.1"]


def test_upgrade_over_a_billion_minor_versions_is_rejected() -> None:
    request = testing.upgrade_plan("v1.31.4", "v1.1000000000.0")

    with pytest.raises(HookError):
        Extension().generate_upgrade_plan(request)


def test_machines_are_replaced_by_default() -> None:
    request = testing.can_update_machine({"version": "v1.33.0"}, {"version": "v1.34.0"})

    assert Extension().can_update_machine(request).machine == ()
