"""The release series of an imported provider.yaml: those of metadata.yaml, as GEN-09 requires."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.unit.importing.crds import imported, provider


def _metadata(**contracts: str) -> dict[str, Any]:
    series = [
        {"major": 0, "minor": int(name.removeprefix("v0_")), "contract": contract}
        for name, contract in contracts.items()
    ]
    return {
        "apiVersion": "clusterctl.cluster.x-k8s.io/v1alpha3",
        "kind": "Metadata",
        "releaseSeries": series,
    }


def _labelled(**labels: str) -> list[dict[str, Any]]:
    found = provider(versions=[])
    for each in found:
        own = each["metadata"]["labels"]
        del own["cluster.x-k8s.io/v1beta2"]
        own |= {f"cluster.x-k8s.io/{contract}": version for contract, version in labels.items()}
        (version,) = each["spec"]["versions"]
        each["spec"]["versions"] = [
            {**version, "name": name, "storage": name == max(labels.values())}
            for name in labels.values()
        ]
    return found


@pytest.mark.parametrize(
    ("labels", "metadata", "releases"),
    [
        ({"v1beta2": "v1"}, {"v0_1": "v1beta2"}, {"v0.1": "v1beta2"}),
        (
            {"v1beta1": "v1", "v1beta2": "v2"},
            {"v0_1": "v1beta1", "v0_2": "v1beta2"},
            {"v0.1": "v1beta1", "v0.2": "v1beta2"},
        ),
        ({"v1beta2": "v1"}, {}, {"v0.1": "v1beta2"}),
    ],
)
def test_series_that_agree_with_the_labels_are_kept(
    labels: dict[str, str], metadata: dict[str, str], releases: dict[str, str]
) -> None:
    found = imported(*_labelled(**labels), metadata=[_metadata(**metadata)] if metadata else [])

    assert yaml.safe_load(found.text)["releases"] == releases
    assert not found.corrected


@pytest.mark.parametrize(
    ("labels", "former", "contract"),
    [
        ({"v1beta2": "v1"}, "v1beta1", "v1beta2"),
        ({"v1beta1": "v1"}, "v1beta2", "v1beta1"),
        ({"v1beta1": "v1", "v1beta2": "v2"}, "v1beta1", "v1beta2"),
    ],
)
def test_the_newest_series_gets_the_newest_contract_of_the_labels(
    labels: dict[str, str], former: str, contract: str
) -> None:
    metadata = _metadata(v0_1="v1beta1", v0_2=former)
    found = imported(*_labelled(**labels), metadata=[metadata])

    assert yaml.safe_load(found.text)["releases"] == {"v0.1": "v1beta1", "v0.2": contract}
    assert found.corrected == {"v0.2": (former, contract)}
