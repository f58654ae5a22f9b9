"""Components of all cases work in each namespace into which they are installed.

`clusterctl init --target-namespace` and the Cluster API Operator choose another namespace than the
release has.  They change what :func:`_forget_moved` removes, and nothing else:
https://github.com/kubernetes-sigs/cluster-api/blob/v1.13.6/cmd/clusterctl/client/repository/components.go
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.golden.cases import cases

FOLDERS = {
    folder.parent: case
    for case in cases()
    for folder in sorted(case.expected.glob("**/config/default"))
}
WITH_WEBHOOKS = (
    "CustomResourceDefinition",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
)


def name(folder: Path) -> str:
    return f"{FOLDERS[folder].name}/{folder.relative_to(FOLDERS[folder].expected)}"


def test_there_are_cases_with_webhooks_and_metrics() -> None:
    assert any((folder / "webhook/manifests.yaml").is_file() for folder in FOLDERS)
    assert all((folder / "components/monitoring/metrics.yaml").is_file() for folder in FOLDERS)


@pytest.mark.parametrize("folder", FOLDERS, ids=name)
def test_nothing_names_the_namespace_of_the_release(folder: Path) -> None:
    kustomization = yaml.safe_load((folder / "default/kustomization.yaml").read_text("utf-8"))
    # Names begin with the namespace, and stay as they are.
    own = re.compile(rf"(?<![\w-]){re.escape(kustomization['namespace'])}(?![\w-])")

    for document in _objects(folder):
        _forget_moved(document)
        found = [text for text in _texts(document) if own.search(text)]
        assert found == [], f"{document['kind']} {document['metadata']}"


def _objects(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a component, and those of its optional parts; samples are the user's."""
    for path in sorted(folder.rglob("*.yaml")):
        if path.parent != folder / "samples":
            for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
                if document and "metadata" in document:
                    yield document


def _forget_moved(document: dict[str, Any]) -> None:
    """Remove what follows the namespace, and names that need not be its own."""
    kind, metadata = document["kind"], document["metadata"]
    metadata.pop("namespace", None)
    if kind == "Namespace":
        del metadata["name"]
    if kind in ("RoleBinding", "ClusterRoleBinding"):
        for subject in document["subjects"]:
            subject.pop("namespace", None)
    if kind in WITH_WEBHOOKS:
        metadata.get("annotations", {}).pop("cert-manager.io/inject-ca-from", None)
        for client in _clients(document):
            del client["service"]["namespace"]
    if kind == "Certificate":
        document["spec"].pop("dnsNames", None)
        document["spec"].pop("commonName", None)  # says who issued it, and is no address


def _clients(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if document["kind"] == "CustomResourceDefinition":
        conversion = document["spec"].get("conversion", {})
        yield from (each["clientConfig"] for key, each in conversion.items() if key == "webhook")
    else:
        yield from (each["clientConfig"] for each in document["webhooks"])


def _texts(value: Any) -> Iterator[str]:
    """Yield all strings in a value, but for keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
