"""What the conformance kit does for providers whose machines are hosts that exist already."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from capsmith_runtime.errors import ConflictError
from capsmith_runtime.kube.client import NamespacedName, ResourceType
from capsmith_runtime.testing.fake_api import FakeApi
from capsmith_runtime.testing.manifests import Manifests
from capsmith_runtime.testing.provider import NeedsObjects
from capsmith_runtime.testing.resource.environment import BaseResourceEnvironment

HOST = ResourceType("example.com", "v1", "Host", "hosts", True)
KEY = NamespacedName("default", "a")


class Double:
    """A test double of a rack."""

    def __init__(self, folder: Path = Path()) -> None:
        self.names: list[str] | None = None

    def start(self, monkeypatch: pytest.MonkeyPatch) -> None: ...

    def servers(self) -> list[str]:
        return []

    def clusters(self) -> list[str]:
        raise NotImplementedError("nothing is created for a cluster")

    def resources(self) -> list[str]:
        if self.names is None:
            raise NotImplementedError("a host exists before its object")
        return self.names

    def objects(self) -> list[dict[str, Any]]:
        return [{"apiVersion": "v1", "kind": "Host", "metadata": {"name": "a"}}]


class Environment(BaseResourceEnvironment):
    """Only the double."""

    def __init__(self, double: Double) -> None:
        self.infrastructure = double


@pytest.mark.parametrize("names", [None, ["one"]])
def test_a_provider_may_create_nothing_for_a_resource(names: list[str] | None) -> None:
    double = Double()
    double.names = names
    Environment(double).check_created()
    assert Environment(double).existing() == (names or [])


@pytest.mark.parametrize("names", [[], ["one", "two"]])
def test_another_number_of_resources_is_named(names: list[str]) -> None:
    double = Double()
    double.names = names
    with pytest.raises(AssertionError, match="resources\\(\\) of the test double returned"):
        Environment(double).check_created()


def test_a_double_may_have_objects() -> None:
    assert isinstance(Double(), NeedsObjects)


async def test_a_patch_with_an_outdated_version_conflicts() -> None:
    """As on an API server: two machines that claim a host at the same time get one."""
    api = FakeApi("v1beta2", Manifests(()))
    metadata = {"name": KEY.name, "namespace": KEY.namespace}
    found = api.add({"apiVersion": "example.com/v1", "kind": "Host", "metadata": metadata})
    version = {"resourceVersion": found["metadata"]["resourceVersion"]}
    await api.patch(HOST, KEY, {"metadata": version, "spec": {"claim": "m1"}})
    with pytest.raises(ConflictError):
        await api.patch(HOST, KEY, {"metadata": version, "spec": {"claim": "m2"}})
    now = api.find("Host", KEY)
    assert now is not None
    assert now["spec"] == {"claim": "m1"}
