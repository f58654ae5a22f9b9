"""Small CRDs, written as short as the test allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from capsmith.commands.load import load_contracts
from capsmith.importing.importer import Imported, import_crds
from capsmith.importing.source import read_sources
from capsmith.manifests.parse import Manifest, read_substituted

INFRASTRUCTURE = "infrastructure.cluster.x-k8s.io"
_TEMPLATED = ("AcmeCluster", "AcmeMachine")


def crd(kind: str, **parts: Any) -> dict[str, Any]:
    """Return a CRD; ``spec`` and ``status`` are properties, other parts go where they belong."""
    group, plural = parts.get("group", INFRASTRUCTURE), parts.get("plural", f"{kind.lower()}s")
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": parts.get("spec", {}),
                **parts.get("around", {}),
            },
            "status": {"type": "object", "properties": parts.get("status", {})},
        },
    }
    version = {
        "name": parts.get("version", "v1beta1"),
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
        "additionalPrinterColumns": parts.get("columns", []),
    }
    labels = {
        "cluster.x-k8s.io/v1beta2": "v1beta1",
        "cluster.x-k8s.io/provider": "infrastructure-acme",
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}", "labels": labels},
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural, **parts.get("names", {})},
            "scope": parts.get("scope", "Namespaced"),
            "versions": [version, *parts.get("versions", [])],
        },
    }


def template_of(kind: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the CRD of a kind's template."""
    inner = {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}}
    found = crd(f"{kind}Template", spec={"template": inner})
    del found["spec"]["versions"][0]["subresources"]
    return found


def provider(**machine: Any) -> list[dict[str, Any]]:
    """Return the CRDs of an infrastructure provider whose machines have these parts."""
    spec = {"providerID": {"type": "string"}, **machine.pop("spec", {})}
    return [
        crd("AcmeCluster"),
        template_of("AcmeCluster", {}),
        crd("AcmeMachine", spec=spec, **machine),
        template_of("AcmeMachine", spec),
    ]


def manifests_of(*crds: Mapping[str, Any]) -> tuple[Manifest, ...]:
    """Return the manifests of a components file with these CRDs."""
    text = yaml.safe_dump_all(crds)
    manifests, findings = read_substituted(text, "components.yaml", text)
    assert not findings
    return manifests


def imported(
    *crds: Mapping[str, Any],
    roles: Mapping[str, str] | None = None,
    metadata: Sequence[Mapping[str, Any]] = (),
) -> Imported:
    """Return the import of CRDs; ``metadata`` are objects of clusterctl's kind Metadata."""
    contracts = {contract.version: contract for contract in load_contracts()}
    sources = read_sources(manifests_of(*crds), roles or {}, contracts["v1beta2"])
    names = ("acme", "https://github.com/acme/cluster-api-provider-acme")
    return import_crds(sources, manifests_of(*metadata), names, contracts)


def machine_of(found: Imported) -> dict[str, Any]:
    """Return the entry of AcmeMachine in the imported provider.yaml."""
    entry: dict[str, Any] = yaml.safe_load(found.text)["infrastructure"]["AcmeMachine"]
    return entry


def field(schema: Mapping[str, Any], required: bool = False) -> Any:
    """Return one field of an AcmeMachine as it is imported."""
    around = {"required": ["own"]} if required else {}
    found = imported(*provider(spec={"own": dict(schema)}, around=around))
    return machine_of(found).get("spec", {}).get("own")
