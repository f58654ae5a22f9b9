"""The kinds of the example that follows two contracts, as generated code converts them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from capsmith.commands.load import load
from capsmith.output.crd import build_version_schema
from capsmith.output.webhooks import compare_shapes, list_converted_resources
from capsmith.provider.model import Provider, Resource
from capsmith_runtime.conversion.objects import ConvertedKind, Converter
from capsmith_runtime.conversion.shape import Change

EXAMPLE = Path(__file__).parents[3] / "examples/two-contracts/provider.yaml"
OLD, NEW = "v1alpha1", "v1beta1"


@cache
def provider() -> Provider:
    found = load(EXAMPLE).provider
    assert found is not None
    return found


@cache
def resources() -> dict[str, Resource]:
    """Return all resources that are converted, by kind, with the same own fields everywhere."""
    return {
        str(resource.kind): resource._replace(version_fields=None)
        for component in provider().components
        for resource in list_converted_resources(component, provider())
    }


@cache
def kinds() -> tuple[ConvertedKind, ...]:
    return tuple(map(_converted, resources().values()))


@cache
def converter() -> Converter:
    return Converter(kinds(), lambda group, kind: "v1beta1")


def schema(kind: str, version: str) -> dict[str, Any]:
    resource = resources()[kind]
    return build_version_schema(resource, next(v for v in resource.versions if v.name == version))


def converted(obj: dict[str, Any], version: str) -> dict[str, Any]:
    group = resources()[obj["kind"]].group
    result: dict[str, Any] = converter().convert(obj, f"{group}/{version}")
    return result


def named(kind: str, version: str, **parts: Any) -> dict[str, Any]:
    """Return an object with apiVersion, kind and metadata."""
    return {
        "apiVersion": f"{resources()[kind].group}/{version}",
        "kind": kind,
        "metadata": {"name": "one", "namespace": "default", "uid": "u"},
        **parts,
    }


def _converted(resource: Resource) -> ConvertedKind:
    changes = compare_shapes(resource)
    return ConvertedKind(
        group=str(resource.group),
        kind=str(resource.kind),
        contracts={str(v.name): v.contract.version for v in resource.versions},
        changes=tuple(Change(c.old, c.new, c.conversion, c.stays) for c in changes),
    )
