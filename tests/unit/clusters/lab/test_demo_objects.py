"""Where the objects are that ``capsmith lab demo`` creates before its cluster."""

from __future__ import annotations

from typing import Any

import pytest

from capsmith.clusters.lab.demo import NAMESPACE, place_object
from capsmith.clusters.lab.errors import LabError
from capsmith.clusters.processes.kube import KubeClient, ServedKind


class _Client(KubeClient):
    """Serves hosts, which are namespaced, and racks, which are not."""

    def __init__(self) -> None:
        """Need no API server."""

    def resolve(self, api_version: str, kind: str) -> ServedKind:
        if kind not in ("Host", "Rack"):
            raise LookupError(f"{api_version} has no kind {kind}")
        return ServedKind(api_version, f"{kind.lower()}s", kind == "Host")


def _object(kind: str, **metadata: str) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": "a", **metadata}}


def test_an_object_without_a_namespace_is_created_beside_the_cluster() -> None:
    placed = place_object(_Client(), _object("Host"))
    assert placed == _object("Host", namespace=NAMESPACE)


@pytest.mark.parametrize("obj", [_object("Host", namespace="other"), _object("Rack")])
def test_other_objects_stay_where_they_are(obj: dict[str, Any]) -> None:
    assert place_object(_Client(), obj) == obj


def test_an_unknown_kind_is_named() -> None:
    with pytest.raises(LabError, match="Hots a cannot be created"):
        place_object(_Client(), _object("Hots"))
