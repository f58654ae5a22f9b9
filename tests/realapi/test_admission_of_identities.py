"""Whether the identity of a provisioned cluster can change, on a real API server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from capsmith.clusters.processes.kube import JSON, ApiError, KubeClient
from capsmith.clusters.processes.wait import eventually
from tests.golden.cases import EXAMPLES, Case, generated

GROUP = "infrastructure.cluster.x-k8s.io"
PROVISIONED: dict[str, JSON] = {
    "v1beta1": {"ready": True},
    "v1beta2": {"initialization": {"provisioned": True}},
}
"""The status of a provisioned cluster by contract."""
FIRST = {"kind": "Identity", "name": "first"}


@pytest.fixture(scope="module", params=sorted(PROVISIONED))
def example(
    request: pytest.FixtureRequest, api: KubeClient, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, JSON]]:
    """Return a contract and a sample cluster, whose CRDs and policy are installed."""
    name: str = request.param
    folder = tmp_path_factory.mktemp("identities")
    text = (EXAMPLES / "acme" / "provider.yaml").read_text().replace("v1beta2", name)
    (folder / "provider.yaml").write_text(text)
    generated(Case(name, folder / "provider.yaml"), folder / "repository")
    folder /= "repository"
    (crd,) = _documents(folder, "config/crd/bases/*clusters.yaml")
    installed = [crd, *_documents(folder, "config/admission/identities.yaml")]
    for document in installed:
        api.create(document)
    version = next(each["name"] for each in crd["spec"]["versions"] if each["storage"])
    kind = crd["spec"]["names"]["kind"]
    (sample,) = (
        each
        for each in _documents(folder, "config/samples/*.yaml")
        if each.get("kind") == kind and each["apiVersion"] == f"{GROUP}/{version}"
    )
    sample["metadata"] = {"name": "one", "namespace": "default"}
    sample["spec"]["identityRef"] = FIRST
    eventually(lambda: _is_in_force(api, sample, PROVISIONED[name]), timeout=120)
    yield name, sample
    for document in reversed(installed):
        api.delete(document)


def test_an_identity_stays_once_the_cluster_is_provisioned(
    api: KubeClient, example: tuple[str, JSON]
) -> None:
    name, sample = example
    sample = {**sample, "metadata": {**sample["metadata"], "name": "life"}}
    cluster = api.create(sample)
    cluster = _refer(api, cluster, {**FIRST, "name": "second"})
    cluster = api.patch(cluster, {"status": PROVISIONED[name]}, subresource="status")
    for other in ({**FIRST, "name": "third"}, {**FIRST, "kind": "Other", "name": "second"}, None):
        with pytest.raises(ApiError, match=f"{GROUP}/allow-identity-change"):
            _refer(api, cluster, other)
    cluster = api.patch(cluster, {"metadata": {"labels": {"team": "a"}}})

    allowed = {"metadata": {"annotations": {f"{GROUP}/allow-identity-change": ""}}}
    cluster = api.patch(cluster, allowed)
    cluster = _refer(api, cluster, {**FIRST, "name": "third"})
    api.delete(cluster)


def _is_in_force(api: KubeClient, sample: JSON, provisioned: JSON) -> bool:
    try:
        cluster = api.create(sample)
    except ApiError:
        return False  # the kind is not served yet
    cluster = api.patch(cluster, {"status": provisioned}, subresource="status")
    try:
        _refer(api, cluster, None)
    except ApiError as error:
        return "allow-identity-change" in str(error)
    finally:
        api.delete(cluster)
    return False


def _refer(api: KubeClient, cluster: JSON, reference: JSON | None) -> JSON:
    return api.patch(cluster, {"spec": {"identityRef": reference}})


def _documents(folder: Path, pattern: str) -> list[dict[str, Any]]:
    return [
        document
        for path in sorted(folder.glob(pattern))
        for document in yaml.safe_load_all(path.read_text())
    ]
