"""Small releases, as data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from capsmith.manifests.crds import Crd, read_crds
from capsmith.manifests.parse import Manifest
from tests.verify.places import run

GROUP = "infrastructure.cluster.x-k8s.io"


def crd(
    kind: str,
    labels: dict[str, str] | None = None,
    versions: tuple[str, ...] = ("v1",),
    spec: dict[str, Any] | None = None,
    group: str = GROUP,
) -> dict[str, Any]:
    """Return a CRD whose kind has the fields of an InfraMachine of contract v1beta2."""
    plural = f"{kind.lower()}s"
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}", "labels": dict(labels or {})},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": names,
            "versions": [
                {
                    "name": name,
                    "served": True,
                    "storage": name == versions[-1],
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": _schema(spec)},
                }
                for name in versions
            ],
        },
    }


def _schema(spec: dict[str, Any] | None) -> dict[str, Any]:
    provisioned = {"type": "object", "properties": {"provisioned": {"type": "boolean"}}}
    fields = {"providerID": {"type": "string"}, **(spec or {})}
    return {
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": {"type": "object", "properties": fields},
            "status": {"type": "object", "properties": {"initialization": provisioned}},
        },
    }


def read_crd(document: dict[str, Any]) -> Crd:
    """Return a CRD as checks see it."""
    (found,) = read_crds((Manifest("crd.yaml", 1, document),))
    return found


def write(
    folder: Path, *documents: dict[str, Any], name: str = "infrastructure-components.yaml"
) -> Path:
    """Write the documents into one file of a release."""
    path = folder / name
    path.write_text(yaml.safe_dump_all(documents, sort_keys=False))
    return path


def violations(*arguments: str) -> list[dict[str, Any]]:
    """Return what is reported, advice included."""
    result = run(*arguments, "--advice", "--format", "json")
    assert result.exit_code in (0, 1), result.output
    found: list[dict[str, Any]] = json.loads(result.output)["violations"]
    return found


def ids(path: Path, folder: Path, *options: str) -> set[str]:
    """Return the ids of what is reported on a folder, in which ``path`` is."""
    assert path.parent == folder
    return {violation["id"] for violation in violations(str(folder), *options)}
