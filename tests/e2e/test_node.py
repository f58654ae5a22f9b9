"""A provider as it ships: an image of its Dockerfile, a Deployment of its release, on a node.

cert-manager, core and the providers for kubeadm are Pods as well, which the unmodified clusterctl
installs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from capsmith.clusters.node.plan import name_cgroup
from capsmith.clusters.processes.kube import KubeClient
from capsmith.clusters.processes.wait import eventually
from tests.e2e.node_lab import ROOT, Deployment, NodeLab, open_node_lab

# Its images and Pods cost more processor time than any other test.
pytestmark = [pytest.mark.e2e, pytest.mark.exhaustive]

_NAMESPACE = "acme-system"


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[NodeLab]:
    with open_node_lab(tmp_path, "acme") as lab:
        example = ROOT / "examples/acme/provider.yaml"
        lab.run("generate", str(example), "--output", str(lab.provider))
        yield lab


def test_provider_as_it_ships(lab: NodeLab) -> None:
    """Machines run under the strictest of Kubernetes' standards; nothing is left in the end."""
    before = _list_traces(lab)
    shown = lab.run("lab", "demo", str(lab.provider), "--pod", "--name", lab.name)
    assert "The Cluster demo has 3 Machines Running" in shown
    with lab.connect() as client:
        _check_restricted(client)
        core = client.preferred_version("cluster.x-k8s.io")
        client.delete(client.get(core, "Cluster", "demo", "default"))
        eventually(
            lambda: client.find(core, "Cluster", "demo", "default") is None,
            what="the Cluster is deleted",
        )
    lab.run("lab", "down", "--name", lab.name)
    assert _list_traces(lab) == before


def _check_restricted(client: KubeClient) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    namespace = client.get("v1", "Namespace", _NAMESPACE)
    client.patch(namespace, {"metadata": {"labels": labels}})
    manager = Deployment(client, _NAMESPACE)
    manager.roll_out({"replicas": 2})
    *_, first = manager.list_pods()
    (container,) = first["spec"]["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"]


def _list_traces(lab: NodeLab) -> dict[str, list[str]]:
    """Return what a node could leave behind: interfaces, mounts, cgroups, processes and files."""
    mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    cgroup = name_cgroup(lab.folder.root)
    commands = [
        path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if path.exists()
    ]
    return {
        "interfaces": sorted(each.name for each in Path("/sys/class/net").iterdir()),
        "mounts": sorted(each.split()[4] for each in mounts),
        "cgroups": [str(each) for each in Path("/sys/fs/cgroup").rglob(cgroup)],
        "processes": [each for each in commands if str(lab.folder.root) in each],
        "files": sorted(str(each) for each in Path("/opt").rglob("*")),
    }
