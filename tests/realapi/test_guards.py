"""Fields that the contract guards: the API server refuses what no controller could carry out."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from capsmith.clusters.processes.kube import JSON, ApiError, KubeClient
from capsmith.clusters.processes.wait import eventually
from tests.golden.cases import EXAMPLES, Case, generated


@pytest.fixture(scope="module")
def samples(api: KubeClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, JSON]]:
    """Return a control plane and a machine of a generated provider, by kind."""
    folder = tmp_path_factory.mktemp("guards") / "repository"
    generated(Case("complete", EXAMPLES / "complete" / "provider.yaml"), folder)
    crds = [
        *_documents(folder, "control-plane/config/crd/bases/*_skiffcontrolplanes.yaml"),
        *_documents(folder, "config/crd/bases/*_skiffmachines.yaml"),
    ]
    for crd in crds:
        api.create(crd)
    found = {}
    for path in ("control-plane/config/samples/*_control_plane", "config/samples/*_machine"):
        (sample,) = _documents(folder, f"{path}.yaml")
        sample["metadata"]["namespace"] = "default"
        eventually(partial(_is_created, api, sample), timeout=120)
        found[sample["kind"]] = sample
    yield found
    for crd in crds:
        api.delete(crd)


@pytest.mark.parametrize(
    ("former", "version", "accepted"),
    [
        ("v1.33.4", "v1.33.5", True),
        ("v1.33.4", "v1.34.0-rc.1", True),
        ("v1.33.4", "1.34.1+vendor.2", True),
        ("v1.33.4", "v1.34", True),
        ("v1.33", "v1.35.0", False),
        ("v1.33.4", "v1.35.0", False),
        ("v1.33.4", "latest", False),
        ("v1.33.4", "v01.33.4", False),
    ],
)
def test_minor_versions_are_not_skipped(
    api: KubeClient, samples: dict[str, JSON], former: str, version: str, accepted: bool
) -> None:
    """Proves: CP-08."""
    control_plane = _with(samples["SkiffControlPlane"], f"from-{former}", version=former)
    api.create(control_plane)
    try:
        assert _accepts(api, control_plane, {"version": version}) is accepted
    finally:
        api.delete(control_plane)


@pytest.mark.parametrize(("replicas", "accepted"), [(-1, False), (0, False), (1, True), (3, True)])
def test_a_control_plane_has_at_least_one_replica(
    api: KubeClient, samples: dict[str, JSON], replicas: int, accepted: bool
) -> None:
    """Proves: CP-04."""
    assert _accepts(api, samples["SkiffControlPlane"], {"replicas": replicas}) is accepted


@pytest.mark.parametrize(
    ("replicas", "max_surge", "accepted"),
    [(1, 1, True), (1, 0, False), (2, 0, False), (3, 0, True), (5, 0, True), (3, 2, False)],
)
def test_a_rollout_without_surge_needs_three_replicas(
    api: KubeClient,
    samples: dict[str, JSON],
    replicas: int,
    max_surge: int,
    accepted: bool,
) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": max_surge}}
    spec = {"replicas": replicas, "rollout": {"strategy": strategy}}
    assert _accepts(api, samples["SkiffControlPlane"], spec) is accepted


@pytest.mark.parametrize(
    ("template", "accepted"),
    [
        ("{{ .cluster.name }}-{{ .controlPlane.name }}-{{.random}}", True),
        ("{{ .random }}", True),
        ("master-{{ .random }}-{{ .random }}", True),
        ("master", False),
        ("{{ .random }}-", False),
        ("-{{ .random }}", False),
        ("Master-{{ .random }}", False),
        ("{{ .machine.name }}-{{ .random }}", False),
        ("{{ .random", False),
    ],
)
def test_names_of_machines_have_a_random_part(
    api: KubeClient, samples: dict[str, JSON], template: str, accepted: bool
) -> None:
    """Proves: CP-19."""
    spec = {"machineNaming": {"template": template}}
    assert _accepts(api, samples["SkiffControlPlane"], spec) is accepted


def test_the_provider_id_of_a_machine_is_written_once(
    api: KubeClient, samples: dict[str, JSON]
) -> None:
    """Proves: IM-01."""
    machine = _with(samples["SkiffMachine"], "written-once")
    machine["spec"].pop("providerID", None)
    api.create(machine)
    api.patch(machine, {"spec": {"providerID": "skiff://one"}})
    assert _accepts(api, machine, {"providerID": "skiff://one"})
    assert not _accepts(api, machine, {"providerID": "skiff://two"})


def _with(sample: JSON, name: str, **spec: Any) -> JSON:
    metadata = {**sample["metadata"], "name": name}
    return {**sample, "metadata": metadata, "spec": {**sample["spec"], **spec}}


def _documents(folder: Path, pattern: str) -> list[JSON]:
    (path,) = folder.glob(pattern)
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def _is_created(api: KubeClient, obj: JSON) -> bool:
    try:
        api.create(obj)
    except LookupError:
        return False
    except ApiError as error:
        if error.status != 404:
            raise
        return False
    return True


def _accepts(api: KubeClient, obj: JSON, spec: JSON) -> bool:
    try:
        api.patch(obj, {"spec": spec})
    except ApiError as error:
        if error.status != 422:
            raise
        return False
    return True
