"""A CRD with versions of two contracts: the API server has generated code convert its objects."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from capsmith.clusters.processes.kube import JSON, ApiError, KubeClient
from capsmith.clusters.processes.wait import eventually
from tests.golden.cases import EXAMPLES, Case, generated
from tests.importing import importable
from tests.realapi.webhook import Webhook
from tests.version_functions import write_functions

PACKAGE = "cluster_api_provider_harbour"
GROUP = "infrastructure.cluster.x-k8s.io"
OLD, NEW = f"{GROUP}/v1alpha1", f"{GROUP}/v1beta1"
DATA = "cluster.x-k8s.io/conversion-data"
SINCE = "2025-05-01T10:00:00Z"


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("conversion") / "repository"
    generated(Case("two-contracts", EXAMPLES / "two-contracts" / "provider.yaml"), folder)
    write_functions(folder)
    with importable(folder / "src", PACKAGE):
        yield folder


@pytest.fixture(scope="module")
def served(repository: Path, api: KubeClient, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return the infrastructure's installed CRDs, which name the address of the webhook."""
    webhook = Webhook(PACKAGE, tmp_path_factory.mktemp("certificates"))
    webhook.start()
    crds = [
        crd
        for path in sorted((repository / "config/crd/bases").glob("*.yaml"))
        for crd in yaml.safe_load_all(path.read_text())
    ]
    for crd in crds:
        webhook.turn(crd)
        api.create(crd)
    yield crds
    for crd in crds:
        api.delete(crd)
    # They go after their objects, which have to be read for that.
    names = [(crd["apiVersion"], crd["kind"], crd["metadata"]["name"]) for crd in crds]
    eventually(lambda: not any(api.find(*name) for name in names), timeout=1200)
    webhook.stop()


def test_written_old_read_new(api: KubeClient, served: list[JSON]) -> None:
    """Proves: CRD-15, IC-05, IC-08."""
    name = created(api, OLD, "HarbourCluster", {"region": "north"})
    wanted: JSON = {
        "ready": True,
        "failureDomains": {"b": {"controlPlane": True}, "a": {"attributes": {"rack": "1"}}},
        "failureReason": "Slow",
        "conditions": [
            {"type": "Ready", "status": "False", "severity": "Error", "lastTransitionTime": SINCE}
        ],
    }
    obj = api.get(OLD, "HarbourCluster", name, "default")
    api.patch(obj, {"status": wanted}, subresource="status")

    new = api.get(NEW, "HarbourCluster", name, "default")
    assert new["spec"] == {"region": "north"}
    assert new["status"]["initialization"] == {"provisioned": True}
    assert new["status"]["failureDomains"] == [
        {"name": "a", "attributes": {"rack": "1"}},
        {"name": "b", "controlPlane": True},
    ]
    (condition,) = new["status"]["conditions"]
    assert (condition["reason"], condition["message"]) == ("NoReasonReported", "")
    assert DATA in new["metadata"]["annotations"]

    old = api.get(OLD, "HarbourCluster", name, "default")
    assert old["status"] == wanted
    assert DATA not in old["metadata"].get("annotations", {})
    assert old["metadata"]["uid"] == new["metadata"]["uid"]


def test_a_controller_on_the_new_version(api: KubeClient, served: list[JSON]) -> None:
    """What a controller writes into the new shape, an old core reads in the old one."""
    name = created(api, NEW, "HarbourMachine", {"size": "s", "image": "i"})
    obj = api.get(NEW, "HarbourMachine", name, "default")
    obj = api.patch(obj, {"spec": {"providerID": "harbour://one"}})
    status: JSON = {
        "initialization": {"provisioned": True},
        "failureDomain": "a",
        "interruptible": True,
        "addresses": [{"type": "InternalIP", "address": "10.0.0.7"}],
        "conditions": [
            {
                **{"type": "Ready", "status": "True", "reason": "Ready", "message": ""},
                **{"lastTransitionTime": SINCE, "observedGeneration": 2},
            }
        ],
    }
    api.patch(obj, {"status": status}, subresource="status")

    old = api.get(OLD, "HarbourMachine", name, "default")
    assert old["spec"]["failureDomain"] == "a"
    assert old["spec"]["providerID"] == "harbour://one"
    assert old["status"]["ready"] is True
    assert old["status"]["conditions"] == [
        {"type": "Ready", "status": "True", "reason": "Ready", "lastTransitionTime": SINCE}
    ]

    # An owner that only knows the old shape labels it, and what it cannot see survives that.
    api.patch(old, {"metadata": {"labels": {"by": "old"}}})
    new = api.get(NEW, "HarbourMachine", name, "default")
    assert new["status"] == status
    assert new["metadata"]["labels"] == {"by": "old"}


def test_fields_of_each_version(api: KubeClient, served: list[JSON]) -> None:
    """Proves: CRD-15.

    The author's functions split one field and rename another; the API server validates what is
    written in each version by its own schema.
    """
    spec = {"size": "s", "image": "i", "placement": "a/b"}
    name = created(api, OLD, "HarbourMachine", spec)
    old = api.get(OLD, "HarbourMachine", name, "default")
    api.patch(old, {"status": {"ready": True, "poweredOn": False}}, subresource="status")

    new = api.get(NEW, "HarbourMachine", name, "default")
    assert new["spec"] == {"size": "s", "image": "i", "zone": "a", "rack": "b"}
    assert new["status"]["power"] == "Stopped"
    assert new["status"]["initialization"] == {"provisioned": True}
    assert "poweredOn" not in new["status"]
    assert api.get(OLD, "HarbourMachine", name, "default")["spec"] == spec

    api.patch(new, {"spec": {"rack": "c"}})
    api.patch(new, {"status": {"power": "Running"}}, subresource="status")
    old = api.get(OLD, "HarbourMachine", name, "default")
    assert old["spec"] == {**spec, "placement": "a/c"}
    assert old["status"] == {"ready": True, "poweredOn": True}
    with pytest.raises(ApiError, match="placement"):
        api.patch(old, {"spec": {"placement": "nowhere"}})


def test_fields_that_a_version_cannot_express(api: KubeClient, served: list[JSON]) -> None:
    """Proves: CRD-15.

    A client of the old version does not lose them.
    """
    spec = {"size": "s", "image": "i", "zone": "a"}
    name = created(api, NEW, "HarbourMachine", spec)

    old = api.get(OLD, "HarbourMachine", name, "default")
    assert old["spec"] == {"size": "s", "image": "i"}
    api.patch(old, {"spec": {"size": "l"}})

    assert api.get(NEW, "HarbourMachine", name, "default")["spec"] == {**spec, "size": "l"}


def test_lists_and_watched_objects(api: KubeClient, served: list[JSON]) -> None:
    names = {created(api, OLD, "HarbourCluster", {"region": "south"}) for _ in range(20)}

    found = api.list(NEW, "HarbourCluster", "default")

    assert names <= {obj["metadata"]["name"] for obj in found}
    crd = api.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"harbourclusters.{GROUP}")
    assert crd["status"]["storedVersions"] == ["v1beta1"]


def test_templates(api: KubeClient, served: list[JSON]) -> None:
    spec = {"size": "s", "image": "i", "failureDomain": "a", "providerID": "", "placement": "a/b"}
    name = created(api, OLD, "HarbourMachineTemplate", {"template": {"spec": spec}})

    new = api.get(NEW, "HarbourMachineTemplate", name, "default")
    assert new["spec"]["template"]["spec"] == {
        **{"size": "s", "image": "i", "zone": "a", "rack": "b"}
    }
    old = api.get(OLD, "HarbourMachineTemplate", name, "default")
    assert old["spec"]["template"]["spec"] == spec


def created(api: KubeClient, api_version: str, kind: str, spec: JSON) -> str:
    """Create an object and return its name; a version is served a moment after its CRD exists."""
    name = f"one-{uuid.uuid4().hex[:8]}"
    obj = {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }
    eventually(lambda: _taken(api, obj), timeout=120)
    return name


def _taken(api: KubeClient, obj: JSON) -> bool:
    try:
        api.create(obj)
    except LookupError:
        return False
    except ApiError as error:
        if error.status != 404:
            raise
        return False
    return True
