"""Which users may write provider ids and external ids, on a real API server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from capsmith.clusters.processes.kube import JSON, ApiError, Credentials, KubeClient
from capsmith.clusters.processes.kubeconfig import request_token
from capsmith.clusters.processes.pki import Pki
from capsmith.clusters.processes.wait import eventually
from tests.golden.cases import EXAMPLES, Case, generated

CLUSTERS = "tidalclusters"
MACHINES = ("tidalmachines", "tidalmachinepools")
PROVIDER_ID = {"providerID": "tidal://of-another"}


@pytest.fixture(scope="module")
def repository(api: KubeClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a repository whose machines, pools and policy are installed."""
    source = tmp_path_factory.mktemp("ids") / "provider.yaml"
    text = (EXAMPLES / "pools" / "provider.yaml").read_text()
    source.write_text(f"{text}\ncredentials: TidalIdentity\n")
    folder = source.parent / "repository"
    generated(Case("pools-with-identities", source), folder)
    installed = [
        *_documents(folder, f"config/crd/bases/*_{CLUSTERS}.yaml"),
        *_documents(folder, "config/crd/bases/*_tidalmachines.yaml"),
        *_documents(folder, "config/crd/bases/*_tidalmachinepools.yaml"),
        *_documents(folder, "config/admission/ids.yaml"),
    ]
    for document in installed:
        api.create(document)
    yield folder
    for document in reversed(installed):
        api.delete(document)


@pytest.fixture(scope="module")
def user(api: KubeClient, repository: Path, pki: Pki) -> Iterator[KubeClient]:
    """Return a client of a user who may change machines and pools, but not their status."""
    group = _sample(repository, "tidal_machine")["apiVersion"].partition("/")[0]
    yield from _account(api, pki, group, "user", [CLUSTERS, *MACHINES])


@pytest.fixture(scope="module")
def manager(api: KubeClient, repository: Path, pki: Pki) -> Iterator[KubeClient]:
    """Return a client with the permissions of the manager."""
    group = _sample(repository, "tidal_machine")["apiVersion"].partition("/")[0]
    owned = (CLUSTERS, *MACHINES)
    resources = [*owned, *(f"{each}/status" for each in owned)]
    yield from _account(api, pki, group, "manager", resources)


@pytest.fixture(autouse=True)
def in_force(repository: Path, user: KubeClient) -> None:
    """Wait until the policy is in force, a moment after it has been created."""
    machine = _sample(repository, "tidal_machine")
    machine["spec"] |= PROVIDER_ID
    eventually(lambda: _is_served(user, machine) and _is_refused(user, machine), timeout=120)


def test_users_cannot_create_objects_with_ids(repository: Path, user: KubeClient) -> None:
    machine, pool = _sample(repository, "tidal_machine"), _sample(repository, "tidal_machine_pool")
    group = machine["apiVersion"].partition("/")[0]
    assert not _is_refused(user, machine)
    assert not _is_refused(user, pool)

    copied = {**machine["metadata"], "annotations": {f"{group}/external-id": "sample.uid-1"}}
    assert _is_refused(user, {**machine, "metadata": copied})
    listed = {**pool["spec"], "providerIDList": ["tidal://of-another"]}
    assert _is_refused(user, {**pool, "spec": listed})
    assert _is_refused(user, {**pool, "spec": {**pool["spec"], **PROVIDER_ID}})


def test_users_change_what_is_no_id(
    repository: Path, user: KubeClient, manager: KubeClient
) -> None:
    machine = _sample(repository, "tidal_machine")
    machine["metadata"]["name"] = "owned"
    group = machine["apiVersion"].partition("/")[0]
    user.create(machine)
    with pytest.raises(ApiError, match="written by the manager only"):
        user.patch(machine, {"spec": PROVIDER_ID})
    annotation: JSON = {"metadata": {"annotations": {f"{group}/external-id": "owned.uid-1"}}}
    with pytest.raises(ApiError, match="written by the manager only"):
        user.patch(machine, annotation)

    manager.patch(machine, annotation)
    manager.patch(machine, {"spec": PROVIDER_ID})
    user.patch(machine, {"metadata": {"labels": {"team": "a"}}})
    with pytest.raises(ApiError, match="written by the manager only"):
        user.patch(machine, {"metadata": {"annotations": {f"{group}/external-id": "owned.uid-2"}}})
    user.delete(machine)


@pytest.mark.parametrize("record", ["account", "identity", "sources"])
def test_users_cannot_write_or_remove_a_record(
    repository: Path, user: KubeClient, manager: KubeClient, record: str
) -> None:
    machine = _sample(repository, "tidal_machine")
    machine["metadata"]["name"] = record
    name = f"{machine['apiVersion'].partition('/')[0]}/{record}"
    user.create(machine)
    manager.patch(machine, {"metadata": {"annotations": {name: "first"}}})
    user.patch(machine, {"metadata": {"labels": {"team": "a"}}})
    for value in ("second", None):
        with pytest.raises(ApiError, match="written by the manager only"):
            user.patch(machine, {"metadata": {"annotations": {name: value}}})
    manager.patch(machine, {"metadata": {"annotations": {name: None}}})
    user.delete(machine)


def test_users_cannot_write_or_remove_the_records_of_a_cluster(
    repository: Path, user: KubeClient, manager: KubeClient
) -> None:
    """A cluster's records survive the writes of users, also without them, as of a manifest."""
    cluster = _sample(repository, "tidal_cluster")
    cluster["metadata"]["name"] = "recorded"
    mine, others = {"externalID": "recorded.uid-1"}, {"externalID": "another.uid-2"}
    assert _is_refused(user, {**cluster, "spec": {**cluster["spec"], "recorded": others}})
    user.create(cluster)
    with pytest.raises(ApiError, match="written by the manager only"):
        user.patch(cluster, {"spec": {"recorded": others}})
    manager.patch(cluster, {"spec": {"recorded": mine}})
    user.patch(cluster, {"metadata": {"labels": {"team": "a"}}})
    for value in ({"account": "second"}, {"externalID": None}, None):
        with pytest.raises(ApiError, match="written by the manager only"):
            user.patch(cluster, {"spec": {"recorded": value}})
    manager.patch(cluster, {"spec": {"recorded": {"account": "first"}}})
    manager.patch(cluster, {"spec": {"recorded": {"account": None}}})
    user.delete(cluster)


def test_administrators_create_objects_with_ids(api: KubeClient, repository: Path) -> None:
    """As clusterctl move and restored backups do."""
    machine = _sample(repository, "tidal_machine")
    group = machine["apiVersion"].partition("/")[0]
    machine["metadata"]["annotations"] = {f"{group}/external-id": "sample.uid-1"}
    machine["spec"] |= PROVIDER_ID
    assert not _is_refused(api, machine)
    cluster = _sample(repository, "tidal_cluster")
    cluster["spec"]["recorded"] = {"externalID": "sample.uid-1", "account": "first"}
    assert not _is_refused(api, cluster)


def _documents(folder: Path, pattern: str) -> list[JSON]:
    (path,) = folder.glob(pattern)
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def _sample(folder: Path, name: str) -> JSON:
    sample = next(iter(_documents(folder, f"config/samples/{name}.yaml")))
    sample["metadata"]["namespace"] = "default"
    return sample


def _account(
    api: KubeClient, pki: Pki, group: str, name: str, resources: list[str]
) -> Iterator[KubeClient]:
    rules = [{"apiGroups": [group], "resources": resources, "verbs": ["*"]}]
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    subject = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
    rbac = "rbac.authorization.k8s.io/v1"
    objects: list[Any] = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"namespace": "default"}},
        {"apiVersion": rbac, "kind": "ClusterRole", "rules": rules},
        {"apiVersion": rbac, "kind": "ClusterRoleBinding", "roleRef": reference},
    ]
    objects[2]["subjects"] = [subject]
    for obj in objects:
        obj["metadata"] = {**obj.get("metadata", {}), "name": name}
        api.create(obj)
    client = KubeClient(api.server, Credentials(pki.ca, token=request_token(api, "default", name)))
    yield client
    client.close()
    for obj in reversed(objects):
        api.delete(obj)


def _is_served(client: KubeClient, obj: JSON) -> bool:
    try:
        client.path(obj["apiVersion"], obj["kind"])
    except (ApiError, LookupError):
        return False
    return True


def _is_refused(client: KubeClient, obj: JSON) -> bool:
    path = client.path(obj["apiVersion"], obj["kind"], None, obj["metadata"]["namespace"])
    try:
        client.request("POST", path, body=obj, query={"dryRun": "All"})
    except ApiError as error:
        if "written by the manager only" not in error.message:
            raise
        return True
    return False
