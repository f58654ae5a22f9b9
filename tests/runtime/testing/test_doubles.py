"""What the conformance tests say of a test double that breaks its protocol."""

from __future__ import annotations

from pathlib import Path

import pytest

from capsmith_runtime.testing.conformance.infrastructure.base import check_one_cluster
from capsmith_runtime.testing.provider import list_clusters


class Double:
    """A test double that returns given names."""

    def __init__(self, folder: Path) -> None:
        self.names: list[str] = []

    def start(self, monkeypatch: pytest.MonkeyPatch) -> None: ...

    def servers(self) -> list[str]:
        return []

    def clusters(self) -> list[str]:
        return self.names


class DoubleWithoutClusters(Double):
    """A test double of an infrastructure in which clusters have nothing of their own."""

    def clusters(self) -> list[str]:
        raise NotImplementedError("nothing is created for a cluster")


@pytest.mark.parametrize("names", [[], ["network-1", "balancer-2"]])
def test_another_number_of_clusters_names_what_the_double_returned(
    tmp_path: Path, names: list[str]
) -> None:
    double = Double(tmp_path)
    double.names = names
    with pytest.raises(AssertionError) as caught:
        check_one_cluster(double)
    assert f"clusters() of the test double returned {names}" in str(caught.value)
    assert "one name for each cluster" in str(caught.value)
    assert "raise NotImplementedError" in str(caught.value)


def test_one_name_for_the_cluster_is_accepted(tmp_path: Path) -> None:
    double = Double(tmp_path)
    double.names = ["network-1"]
    check_one_cluster(double)


def test_a_provider_may_create_nothing_for_a_cluster(tmp_path: Path) -> None:
    double = DoubleWithoutClusters(tmp_path)
    assert list_clusters(double) == []
    check_one_cluster(double)
