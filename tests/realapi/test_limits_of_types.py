"""Limits that are no numbers of their field's type: the API server refuses each value."""

from __future__ import annotations

from typing import Any

import pytest

from capsmith.clusters.processes.kube import ApiError, KubeClient
from capsmith.clusters.processes.wait import eventually
from capsmith.judge.checks.apiextensions.limits import find_limit_faults
from tests.realapi.crd_mutants import make_base

GROUP = "limits.example.com"
FIELDS: dict[str, dict[str, Any]] = {
    "vlan": {"type": "integer", "format": "int32", "maximum": 4294967295},
    "share": {"type": "integer", "minimum": 0.5},
    "weight": {"type": "number", "format": "float", "maximum": 1e300},
    "port": {"type": "integer", "format": "int32", "maximum": 65535},
    "tag": {"type": "integer", "minimum": 1.0, "maximum": 4294967295},
    "ratio": {"type": "number", "minimum": 0.5},
}


@pytest.fixture(scope="module")
def things(api: KubeClient) -> KubeClient:
    """Return a client of an API server with a kind that has these fields."""
    crd = make_base()
    crd["metadata"]["name"], crd["spec"]["group"] = f"things.{GROUP}", GROUP
    for version in crd["spec"]["versions"]:
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        spec["properties"] = FIELDS
        for key in ("subresources", "selectableFields", "additionalPrinterColumns"):
            del version[key]
    api.apply(crd)

    def is_served() -> bool:
        try:
            return bool(api.resolve(f"{GROUP}/v1", "Thing"))
        except (ApiError, LookupError):
            return False

    eventually(is_served, what="the kind is served")
    return api


@pytest.mark.parametrize("name", FIELDS)
def test_the_server_refuses_each_value(things: KubeClient, name: str) -> None:
    """Proves: CRD-27."""
    metadata = {"name": "thing", "namespace": "default"}
    thing = {"apiVersion": f"{GROUP}/v1", "kind": "Thing", "metadata": metadata}
    faults = list(find_limit_faults(FIELDS[name]))
    if not faults:
        things.apply({**thing, "spec": {name: 5}}, dry_run=True)
        return
    with pytest.raises(ApiError, match="boundary value must be of type"):
        things.apply({**thing, "spec": {name: 5}}, dry_run=True)
