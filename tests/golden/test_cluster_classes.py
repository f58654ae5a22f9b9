"""ClusterClasses of generated repositories: what their classes of workers share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.golden.cases import EXAMPLES, Case, generated

TOPOLOGY = "cluster-template-topology.yaml"


@pytest.fixture(params=["v1beta1", "v1beta2"])
def templates(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return the folder of a provider's templates with machine pools, under one contract."""
    spec, contract = tmp_path / "provider.yaml", request.param
    text = (EXAMPLES / "pools" / "provider.yaml").read_text()
    # Cluster API's end-to-end tests require v1beta2.
    spec.write_text(text.replace("v1beta2", contract).replace("e2e: true", "e2e: false"))
    repository = tmp_path / "repository"
    generated(Case(f"pools-{contract}", spec), repository)
    return repository / "templates"


def test_each_class_of_workers_has_templates_of_its_own(templates: Path) -> None:
    """A change of one class must not replace the machines of another."""
    documents = [each for each in _documents(templates / "clusterclass-tidal.yaml") if each]
    workers = _cluster_class(documents)["spec"]["workers"]
    classes = [*workers["machineDeployments"], *workers["machinePools"]]
    used = Counter(name for each in classes for name in _references(each))
    present = {(each["kind"], each["metadata"]["name"]) for each in documents}
    assert len(classes) == 3
    assert len(used) == 2 * len(classes)
    assert set(used.values()) == {1}
    assert used.keys() <= present


def test_the_topology_has_a_pool_of_each_class(templates: Path) -> None:
    """Users see with the flavor for topologies what the class offers."""
    workers = _cluster_class(_documents(templates / "clusterclass-tidal.yaml"))["spec"]["workers"]
    (cluster,) = _documents(templates / TOPOLOGY)
    pools = cluster["spec"]["topology"]["workers"]["machinePools"]
    assert [each["class"] for each in pools] == [each["class"] for each in workers["machinePools"]]
    assert [each["name"] for each in pools] == ["mp-0", "mp-1"]


def _cluster_class(documents: list[Any]) -> dict[str, Any]:
    (found,) = (each for each in documents if each["kind"] == "ClusterClass")
    return dict(found)


def _documents(path: Path) -> list[Any]:
    return list(yaml.safe_load_all(path.read_text()))


def _references(value: Any) -> Iterator[tuple[str, str]]:
    """Yield kind and name of each object that a class refers to."""
    if isinstance(value, dict):
        if {"kind", "name"} <= value.keys():
            yield value["kind"], value["name"]
        for each in value.values():
            yield from _references(each)
