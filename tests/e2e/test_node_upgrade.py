"""A provider that runs as Pods moves to the next contract while its users send requests."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager

import pytest

from capsmith.clusters.lab.connection import connect
from capsmith.clusters.lab.state import read_run
from capsmith.clusters.processes.kube import KubeClient
from capsmith.clusters.processes.wait import eventually
from tests.e2e.node_lab import (
    ROOT,
    Answers,
    Deployment,
    NodeLab,
    count_reasons,
    open_node_lab,
    send_requests,
)

pytestmark = [pytest.mark.e2e, pytest.mark.exhaustive]

_GROUP = "infrastructure.homelab.example.com"
_OLD, _NEW = f"{_GROUP}/v1alpha1", f"{_GROUP}/v1alpha2"
_KIND = "HomelabMachine"
_NAMESPACE = "homelab-system"
_READERS = 8
_MANY_READERS = 120
_REQUESTS_EACH = 5


@pytest.fixture
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeLab]:
    """Return a lab with a cluster of three Machines, and a provider for the older contract only."""
    with open_node_lab(tmp_path_factory.mktemp("upgrade"), "homelab") as lab:
        example = ROOT / "examples/homelab-v1beta1/provider.yaml"
        lab.run("generate", str(example), "--output", str(lab.provider))
        shown = lab.run("lab", "demo", str(lab.provider), "--pod", "--name", lab.name)
        assert "The Cluster demo has 3 Machines Running" in shown
        yield lab


def test_contract_upgrade_as_pods(lab: NodeLab) -> None:
    """No request of the older version is lost in any upgrade, and the Machines stay."""
    _end_run(lab)
    with lab.connect() as client:
        before = _list_uids(client)
        with _read(client, _OLD, _READERS) as answers:
            _upgrade(lab, "--contract", "v1beta1,v1beta2")
        print(answers.describe("upgrade from v1beta1 to both contracts, older version"))
        assert not answers.failures, count_reasons(answers)
        _check_conversion(client)
        with _read(client, _NEW, _READERS) as answers:
            _upgrade(lab, "--contract", "v1beta2")
        print(answers.describe("upgrade from both contracts to v1beta2, newer version"))
        assert not answers.failures, count_reasons(answers)
        assert _list_uids(client) == before
        _delete(lab, client)


def _read(client: KubeClient, version: str, readers: int) -> AbstractContextManager[Answers]:
    """Read the provider's machines in one version, again and again."""
    return send_requests(client, lambda probe, _: probe.list(version, _KIND, "default"), readers)


def _list_uids(client: KubeClient) -> dict[str, str]:
    """Return the uids of Machines and of the provider's machines, by kind and name."""
    core = client.preferred_version("cluster.x-k8s.io")
    found = client.list(core, "Machine", "default")
    assert [each["status"]["phase"] for each in found] == ["Running"] * 3
    served = client.preferred_version(_GROUP)
    found += client.list(served, _KIND, "default")
    return {f"{each['kind']} {each['metadata']['name']}": each["metadata"]["uid"] for each in found}


def _check_conversion(client: KubeClient) -> None:
    """All objects are stored in the newer version, so that each read of the older one converts."""
    eventually(lambda: _list_stored(client) == ["v1alpha2"], what="stored objects are migrated")
    with _read(client, _OLD, _MANY_READERS) as answers:
        enough = _MANY_READERS * _REQUESTS_EACH
        eventually(
            lambda: answers.answered + len(answers.failures) >= enough, what="many conversions"
        )
    print(answers.describe(f"{_MANY_READERS} concurrent readers, with conversion"))
    assert not answers.failures, count_reasons(answers)
    manager = Deployment(client, _NAMESPACE)
    for replicas in (1, 2):
        manager.roll_out({"replicas": replicas})
        with _read(client, _OLD, _READERS) as answers:
            stamp = {"e2e/changed": str(replicas)}
            manager.roll_out({"template": {"metadata": {"annotations": stamp}}})
        print(answers.describe(f"rolling update with {replicas} replicas, with conversion"))
        assert not answers.failures, count_reasons(answers)


def _list_stored(client: KubeClient) -> list[str]:
    name = f"homelabmachines.{_GROUP}"
    crd = client.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", name)
    return list(crd["status"]["storedVersions"])


def _delete(lab: NodeLab, client: KubeClient) -> None:
    """Delete the Cluster, then the provider: nothing of either is left."""
    core = client.preferred_version("cluster.x-k8s.io")
    client.delete(client.get(core, "Cluster", "demo", "default"))
    eventually(lambda: not client.list(core, "Cluster", "default"), what="the Cluster is deleted")
    assert client.list(client.preferred_version(_GROUP), _KIND, "default") == []
    with connect(lab.folder) as connection:
        connection.clusterctl.delete_provider(connection.kubeconfig, "homelab")
    eventually(
        lambda: client.list("apps/v1", "Deployment", _NAMESPACE) == [],
        what="the provider is deleted",
    )


def _upgrade(lab: NodeLab, *arguments: str) -> None:
    """Update the repository, and install its next release with clusterctl upgrade apply."""
    lab.run("update", str(lab.provider), *arguments)
    lab.run_provider(lab.provider)


def _end_run(lab: NodeLab) -> None:
    """End the run that the demo left in the background; the Pods go on."""
    state = read_run(lab.folder.run_state)
    assert state is not None
    os.kill(state.pid, signal.SIGTERM)
    eventually(lambda: not lab.folder.run_state.exists(), what="the run of the demo has ended")
