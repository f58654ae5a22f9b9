"""What a run simulates beside a provider: only a provider without infrastructure needs it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from capsmith.clusters.lab.errors import LabError
from capsmith.clusters.lab.simulated.release import build_release
from capsmith.commands.conformance_release import ConformanceRequest, add_simulation

_KUBEADM = {"group": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig"}
_KIND = {"RaftThing": {"implements": "any"}}


def _repository(folder: Path, **sections: Any) -> Path:
    for name in ("src/raft/__main__.py", "hack/release.py", "metadata.yaml"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (folder / "provider.yaml").write_text(yaml.safe_dump({"name": "raft", **sections}))
    return folder


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"infrastructure": _KIND}, "the provider has infrastructure"),
        ({"ipam": _KIND}, "the provider needs no cluster"),
        (
            {"controlPlane": {"RaftControlPlane": {"bootstrap": _KUBEADM}}},
            "its control planes need another provider's KubeadmConfig",
        ),
    ],
)
def test_what_cannot_be_simulated_is_refused(
    tmp_path: Path, sections: dict[str, Any], message: str
) -> None:
    repository = _repository(tmp_path / "raft", **sections)

    with pytest.raises(LabError, match=message) as caught:
        build_release(repository, tmp_path / "simulated")

    assert caught.value.finding.id == "lab-simulate"
    assert not (tmp_path / "simulated").exists()


def test_nothing_is_simulated_in_a_cluster_of_the_user(tmp_path: Path) -> None:
    request = ConformanceRequest("v1.14", kubeconfig=tmp_path, simulate=tmp_path)

    with pytest.raises(ValueError, match="--simulate and --kubeconfig exclude each other"):
        add_simulation(request, tmp_path)


def test_a_request_without_simulation_stays_as_it_is(tmp_path: Path) -> None:
    request = ConformanceRequest("v1.14", managers=("run",))

    assert add_simulation(request, tmp_path) is request
