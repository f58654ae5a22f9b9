"""CRDs of successive releases on an API server, each brought there as clusterctl brings it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from capsmith.clusters.processes.kube import JSON, KubeClient
from capsmith.clusters.processes.wait import eventually
from capsmith.output.crd import build_crd
from capsmith.provider.model import Provider

_CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
_CONTRACT = "cluster.x-k8s.io/v1"


def crds_of(provider: Provider, kinds: Iterable[str]) -> Iterator[JSON]:
    """Yield the CRDs of some kinds, as a release contains them."""
    for component in provider.components:
        for resource in component.resources:
            if resource.kind in kinds:
                yield build_crd(resource, component, provider.former_contracts)


def upgraded(api: KubeClient, crd: JSON) -> JSON:
    """Install a CRD like `clusterctl upgrade apply` or `init`, and return it as stored.

    CRDs are never deleted. Raises ApiError if the API server refuses the CRD.
    """
    return eventually(lambda: _merged(api, _typed(crd)))


def established(api: KubeClient, name: str) -> bool:
    """Return whether the API server serves a CRD, whose names and scope are then immutable."""
    crd = api.get(*_CRD, name)
    conditions = crd.get("status", {}).get("conditions") or []
    return ("Established", "True") in {(each["type"], each["status"]) for each in conditions}


def migrated(api: KubeClient, crd: JSON) -> None:
    """Leave a single stored version in the status, as the manager does after a migration."""
    stored = [each["name"] for each in crd["spec"]["versions"] if each["storage"]]
    if crd["status"]["storedVersions"] != stored:
        api.patch(crd, {"status": {"storedVersions": stored}}, subresource="status")


def removed(api: KubeClient, names: Iterable[str]) -> None:
    """Delete the CRDs without waiting."""
    for name in names:
        api.delete({"apiVersion": _CRD[0], "kind": _CRD[1], "metadata": {"name": name}})


def check_labels(crd: JSON) -> None:
    """Check that contract labels name each served version once (GEN-02, GEN-06)."""
    labels = crd["metadata"]["labels"].items()
    values = [text for key, text in labels if key.startswith(_CONTRACT)]
    named = [name for text in values for name in text.split("_") if name]
    served = [each["name"] for each in crd["spec"]["versions"] if each["served"]]
    assert sorted(named) == sorted(served), f"{crd['metadata']['name']}: {dict(labels)}"


def _merged(api: KubeClient, wanted: JSON) -> JSON:
    current = api.find(*_CRD, wanted["metadata"]["name"])
    if current is None:
        return api.create(wanted)
    version = current["metadata"]["resourceVersion"]
    # The API server itself writes the status; clusterctl tries again as well.
    return api.patch(
        current, {**wanted, "metadata": {**wanted["metadata"], "resourceVersion": version}}
    )


def _typed(value: Any) -> Any:
    """Without nulls: clusterctl reads CRDs into a Go type, to put the namespace of webhooks in.

    So a manifest cannot remove a key.
    """
    if isinstance(value, dict):
        return {key: _typed(each) for key, each in value.items() if each is not None}
    return [_typed(each) for each in value] if isinstance(value, list) else value
