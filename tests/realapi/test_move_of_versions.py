"""The real clusterctl moves objects in the version that their CRD stores."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from capsmith.clusters.processes.kube import JSON, ApiError, KubeClient
from capsmith.clusters.processes.pki import Pki
from capsmith.clusters.processes.servers import ApiServer
from capsmith.clusters.processes.tools.catalogue import core_module, default_core
from capsmith.clusters.processes.wait import eventually
from tests.e2e.tools.required import required_toolbox
from tests.realapi.conftest import NewServer
from tests.realapi.crd_lineage import upgraded
from tests.verify.releases import crd, violations, write

CONTRACT, INSTALLED = "cluster.x-k8s.io/v1beta2", "clusterctl.cluster.x-k8s.io"
GROUP = "infrastructure.move.example.com"


@pytest.fixture(scope="module")
def clusterctl() -> Path:
    module = core_module(default_core())
    return required_toolbox("a move by clusterctl", [module]).path(module, "clusterctl")


@pytest.fixture(scope="module")
def source(new_server: NewServer, pki: Pki, clusterctl: Path) -> Iterator[ApiServer]:
    """Return an API server with the CRDs of core, by which clusterctl knows the contract."""
    server = new_server("source", pki)
    try:
        server.start()
        text = (clusterctl.parent / "core-components.yaml").read_text(encoding="utf-8")
        for document in yaml.load_all(text, Loader=yaml.CSafeLoader):
            if document and document["kind"] == "CustomResourceDefinition":
                document["spec"].pop("conversion", None)
                document["metadata"]["labels"][INSTALLED] = ""
                server.client.apply(document)
        yield server
    finally:
        server.stop()


@pytest.mark.parametrize("is_served", [True, False])
def test_the_storage_version_has_to_be_served(
    is_served: bool, source: ApiServer, clusterctl: Path, tmp_path: Path
) -> None:
    """Proves: MV-12."""
    labels = {CONTRACT: "v1alpha1", INSTALLED: "", f"{INSTALLED}/move": ""}
    document = crd("AcmeMachine", labels, ("v1alpha1", "v1"), group=GROUP)
    document["spec"]["versions"][1]["served"] = is_served
    upgraded(source.client, document)
    machine = {
        **{"apiVersion": f"{GROUP}/v1alpha1", "kind": "AcmeMachine", "spec": {}},
        "metadata": {"name": "one", "namespace": "default"},
    }
    eventually(lambda: _is_stored(source.client, machine), what="the object is stored")
    target = tmp_path / "moved"
    target.mkdir()
    done = subprocess.run(
        [clusterctl, "move", "--to-directory", target, "--kubeconfig", source.kubeconfig],
        env={
            **os.environ,
            "CLUSTERCTL_DISABLE_VERSIONCHECK": "true",
            "GOPROXY": "off",
            "XDG_CONFIG_HOME": str(tmp_path),
        },
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert (done.returncode == 0) is is_served, done.stderr
    if not is_served:
        assert "failed to discover the object graph" in done.stderr
    assert any(target.iterdir()) is is_served
    found = {each["id"] for each in violations(str(write(tmp_path, document)))}
    assert ("MV-12" in found) is not is_served


def _is_stored(api: KubeClient, document: JSON) -> bool:
    try:
        api.apply(document, "author")
    except (ApiError, LookupError):
        return False
    return True
