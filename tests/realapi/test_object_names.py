"""The API server accepts the names of all generated objects, up to the limits that validate has."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from capsmith.clusters.processes.kube import JSON, ApiError, KubeClient
from capsmith.clusters.processes.tools.build import find_kubectl
from capsmith.clusters.processes.wait import eventually
from capsmith.commands.generate import generate
from capsmith.manifests.variables import substitute
from tests.e2e.releases import is_kubernetes_since
from tests.invalid.cases import judge

ISSUED = ("Issuer", "Certificate")
MONITORED = ("ServiceMonitor", "PrometheusRule")
GROUPS = {"cert-manager.io": ISSUED, "monitoring.coreos.com": MONITORED}
HEAD = """
capsmith: 1
repository: https://github.com/acme/cluster-api-provider-acme
contracts: [v1beta2]
releases: {v0.1: v1beta2}
"""
LONGEST = {
    "name": f"""
name: {"a" * 48}
infrastructure:
  AcmeCluster: {{implements: InfraCluster}}
  AcmeMachine: {{implements: InfraMachine}}
credentials: AcmeIdentity
namespaces: {{infrastructure: {"n" * 55}}}
""",
    "digit": """
name: 4acme
infrastructure:
  AcmeCluster: {implements: InfraCluster}
  AcmeMachine: {implements: InfraMachine}
credentials: AcmeIdentity
namespaces: {infrastructure: acme-system}
""",
    "sections": f"""
name: {"a" * 34}
infrastructure:
  AcmeCluster: {{implements: InfraCluster}}
  AcmeMachine: {{implements: InfraMachine}}
bootstrap: {{AcmeConfig: {{implements: BootstrapConfig}}}}
controlPlane: {{AcmeControlPlane: {{implements: ControlPlane}}}}
ipam: {{AcmePool: {{implements: IPPool}}}}
addon: {{AcmeAddon: {{implements: Addon}}}}
runtimeExtension: {{hooks: [GeneratePatches]}}
namespaces: {{runtimeExtension: {"e" * 55}}}
""",
    "kinds": f"""
name: acme
groups: {{infrastructure: a.b}}
infrastructure:
  A{"c" * 50}: {{implements: InfraCluster}}
  A{"m" * 50}:
    implements: InfraMachine
    shortNames: [{"s" * 63}]
    categories: [{"c" * 63}]
    webhooks: {{defaulting: true, validation: true, templates: true}}
  AcmeThing: {{implements: Resource, plural: {"p" * 63}}}
namespaces: {{infrastructure: {"n" * 55}}}
""",
    "group": f"""
name: acme
groups: {{infrastructure: 4{"a" * 48}.b}}
infrastructure:
  AcmeCluster: {{implements: InfraCluster}}
  AcmeMachine: {{implements: InfraMachine, webhooks: {{defaulting: true}}}}
""",
    "versions": f"""
name: acme
apiVersions: [{", ".join(f"v1alpha{number}" for number in range(1, 7))}, v10alpha1]
infrastructure:
  AcmeCluster: {{implements: InfraCluster}}
  AcmeMachine: {{implements: InfraMachine}}
""",
    "version": f"""
name: acme
apiVersions: [v{"1" * 62}]
infrastructure:
  AcmeCluster: {{implements: InfraCluster}}
  AcmeMachine: {{implements: InfraMachine}}
""",
}


@pytest.fixture(scope="module")
def site(api: KubeClient) -> Iterator[KubeClient]:
    """Return a client of an API server with the kinds of cert-manager and Prometheus Operator."""
    kinds = [(group, kind) for group, kinds in GROUPS.items() for kind in kinds]
    crds = [_crd(group, kind) for group, kind in kinds]
    for crd in crds:
        api.create(crd)
    for group, kind in kinds:
        eventually(partial(_is_served, api, f"{group}/v1", kind), timeout=120)
    yield api
    for crd in crds:
        api.delete(crd)


@pytest.mark.parametrize("case", LONGEST)
def test_the_longest_names_are_accepted(site: KubeClient, tmp_path: Path, case: str) -> None:
    refused = [
        f"{obj['kind']} {obj['metadata']['name']}: {error}"
        for obj in _objects(HEAD + LONGEST[case], tmp_path)
        if (error := _error(site, obj))
    ]
    assert not refused


@pytest.mark.parametrize(
    ("case", "change"),
    [
        ("name", {"n" * 55: "n" * 56}),
        ("sections", {"e" * 55: "e" * 56}),
        ("kinds", {"n" * 55: "n" * 56}),
        ("kinds", {"s" * 63: "s" * 64}),
        ("kinds", {"s" * 63: "4s"}),
        ("kinds", {"c" * 63: "c" * 64}),
        ("kinds", {"c" * 63: "4c"}),
        ("kinds", {"p" * 63: "p" * 64}),
        ("kinds", {"p" * 63: "4p"}),
        ("versions", {"v10alpha1": "v100alpha1"}),
    ],
)
def test_both_refuse_what_is_beyond(
    site: KubeClient, tmp_path: Path, case: str, change: Mapping[str, str]
) -> None:
    """The limits of validate are no narrower than those of the API server."""
    text = HEAD + LONGEST[case]
    assert [each for each in judge(_replaced(text, change)) if each.severity == "error"]
    errors = [_error(site, _replaced(obj, change)) for obj in _objects(text, tmp_path)]
    assert any("Invalid value" in error for error in errors)


def test_name_of_a_service_may_begin_with_a_digit_since_v1_36(
    site: KubeClient, tmp_path: Path
) -> None:
    """The namespace gives the Service its name; validate thinks of older servers too."""
    text, change = HEAD + LONGEST["digit"], {"acme-system": "4acme-system"}
    assert [each for each in judge(_replaced(text, change)) if each.severity == "error"]
    errors = [_error(site, _replaced(obj, change)) for obj in _objects(text, tmp_path)]
    refused = any("Invalid value" in error for error in errors)
    assert refused != is_kubernetes_since("v1.36")


def _replaced(value: Any, change: Mapping[str, str]) -> Any:
    text = value if isinstance(value, str) else yaml.safe_dump(value)
    for old, new in change.items():
        assert len(old) > 8, "it is part of no other word"
        text = text.replace(old, new)
    return text if isinstance(value, str) else yaml.safe_load(text)


def _objects(text: str, folder: Path) -> list[JSON]:
    """Return the objects of a generated repository, with those for monitoring."""
    (folder / "provider.yaml").write_text(text)
    report = generate(folder / "provider.yaml", folder / "repository")
    assert report.exit_code == 0, report.findings
    found: list[JSON] = []
    for path in sorted((folder / "repository").glob("**/config/overlay/kustomization.yaml")):
        with path.open("a", encoding="utf-8") as file:
            file.write("components:\n- ../components/monitoring\n")
        done = subprocess.run(
            [find_kubectl(), "kustomize", path.parent], capture_output=True, text=True, check=True
        )
        found += [each for each in yaml.safe_load_all(substitute(done.stdout)) if each]
    assert {"Service", "Deployment", "ServiceMonitor"} <= {each["kind"] for each in found}
    return found


def _error(api: KubeClient, obj: JSON) -> str:
    """Return why the API server does not accept an object; empty if it does."""
    metadata = obj["metadata"]
    # A dry run needs a namespace that exists; those of the case are only named.
    namespace = "default" if "namespace" in metadata else None
    metadata = {**metadata, **({"namespace": namespace} if namespace else {})}
    path = api.path(obj["apiVersion"], obj["kind"], None, namespace)
    try:
        api.request("POST", path, body={**obj, "metadata": metadata}, query={"dryRun": "All"})
    except ApiError as error:
        return error.message
    return ""


def _is_served(api: KubeClient, api_version: str, kind: str) -> bool:
    try:
        api.resolve(api_version, kind)
    except (ApiError, LookupError):
        return False
    return True


def _crd(group: str, kind: str) -> JSON:
    plural = f"{kind.lower()}s"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
        },
    }
