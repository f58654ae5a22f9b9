"""Providers of each type as Pods on one node: managers get ready, and webhooks answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from capsmith.clusters.lab.connection import connect
from capsmith.clusters.processes.kube import JSON, ApiError, KubeClient
from capsmith.clusters.processes.wait import eventually
from tests import version_functions
from tests.e2e.node_lab import ROOT, NodeLab, open_node_lab

pytestmark = [pytest.mark.e2e, pytest.mark.exhaustive]

_DEFAULT = "default"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeLab]:
    with open_node_lab(tmp_path_factory.mktemp("types"), "types") as lab:
        lab.run("lab", "up", "--node", "--name", lab.name)
        yield lab


@pytest.mark.parametrize(
    "example", ["two-contracts", "everything", "complete", "managed", "pools", "extension"]
)
def test_managers_get_ready(lab: NodeLab, example: str) -> None:
    """Each component of a provider is a Pod, and is deleted again."""
    provider = _generate(lab, example)
    with lab.connect() as client:
        # clusterctl waits for the Deployments.
        lab.run_provider(provider)
        with connect(lab.folder) as connection:
            inventory = "clusterctl.cluster.x-k8s.io/v1alpha3"
            installed = [
                each
                for each in client.list(inventory, "Provider")
                if "kubeadm" not in each["metadata"]["name"] and each["type"] != "CoreProvider"
            ]
            assert installed
            for each in installed:
                deployments = client.list("apps/v1", "Deployment", each["metadata"]["namespace"])
                assert all(found["status"]["readyReplicas"] for found in deployments)
                print(f"{example}: {each['type']} {each['version']} is ready")
            check = _CHECKS.get(example)
            if check is not None:
                check(client)
            for each in installed:
                kind = _FLAGS[each["type"]]
                connection.clusterctl.delete_provider(
                    connection.kubeconfig, each["providerName"], kind
                )


_FLAGS = {
    "InfrastructureProvider": "infrastructure",
    "BootstrapProvider": "bootstrap",
    "ControlPlaneProvider": "control-plane",
    "IPAMProvider": "ipam",
    "RuntimeExtensionProvider": "runtime-extension",
    "AddonProvider": "addon",
}


def _generate(lab: NodeLab, example: str) -> Path:
    described = yaml.safe_load((ROOT / "examples" / example / "provider.yaml").read_text())
    # The SDK of this example is invented, and the runtime is not in the package index.
    for key in ("sdk", "dependencies", "devDependencies", "runtime", "blueprints"):
        described.pop(key, None)
    folder = lab.provider.parent / example
    spec = folder.with_suffix(".yaml")
    spec.write_text(yaml.safe_dump(described, sort_keys=False))
    lab.run("generate", str(spec), "--output", str(folder))
    if example == "two-contracts":
        (folder / version_functions.MODULE).write_text(version_functions.FUNCTIONS)
    return folder


def _check_conversion(client: KubeClient) -> None:
    """Functions of the author convert in the Pod, both ways."""
    group = "infrastructure.cluster.x-k8s.io"
    metadata = {"name": "converted", "namespace": _DEFAULT}
    old: JSON = {
        "apiVersion": f"{group}/v1alpha1",
        "kind": "HarbourMachine",
        "metadata": metadata,
        "spec": {"size": "s", "image": "i", "placement": "north/r1"},
    }
    client.apply(old)
    new = client.get(f"{group}/v1beta1", "HarbourMachine", "converted", _DEFAULT)
    assert (new["spec"]["zone"], new["spec"]["rack"]) == ("north", "r1")
    client.patch(new, {"spec": {"rack": "r2"}})
    read = client.get(f"{group}/v1alpha1", "HarbourMachine", "converted", _DEFAULT)
    assert read["spec"]["placement"] == "north/r2"
    _delete(client, read)


def _check_admission(client: KubeClient) -> None:
    """The webhooks for defaults and validation admit in each of three versions."""
    group = "infrastructure.nimbus.example.com"
    for version in ("v1alpha1", "v1beta1", "v1beta2"):
        obj: JSON = {
            "apiVersion": f"{group}/{version}",
            "kind": "NimbusMachine",
            "metadata": {"name": version, "namespace": _DEFAULT},
            "spec": {"flavor": "f", "imageID": "i", "sshKeys": ["k"]},
        }
        found = client.apply(obj)
        assert found["spec"]["rootDiskGiB"] == 20
        with pytest.raises(ApiError):
            client.apply({**obj, "spec": {**obj["spec"], "rootDiskGiB": 9}})
        _delete(client, found)


def _delete(client: KubeClient, obj: JSON) -> None:
    metadata = obj["metadata"]
    client.delete(obj)
    eventually(
        lambda: not client.find(
            obj["apiVersion"], obj["kind"], metadata["name"], metadata["namespace"]
        ),
        what=f"{metadata['name']} is deleted",
    )


_CHECKS: dict[str, Callable[[KubeClient], None]] = {
    "two-contracts": _check_conversion,
    "everything": _check_admission,
}
