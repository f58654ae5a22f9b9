"""Checks of stored objects and their kinds while API versions are added and removed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress

from capsmith.clusters.processes.kube import JSON, KubeClient, StaleError
from capsmith.clusters.processes.wait import NotYet, eventually, settled
from tests.e2e.harness.provider import ProviderUnderTest
from tests.e2e.scenario import Scenario

_CONTRACT_LABEL = re.compile(r"cluster\.x-k8s\.io/v[0-9].*")
_CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
_CORE_KINDS = ("Cluster", "Machine", "MachineSet", "MachineDeployment", "ClusterClass")
_WRITES = 20


def crd_of(client: KubeClient, crd: JSON) -> JSON:
    """Return a kind's installed CRD."""
    return client.get(*_CRD, crd["metadata"]["name"])


def stored_objects(client: KubeClient, provider: ProviderUnderTest) -> list[JSON]:
    """Return all objects of the provider's kinds, in their storage version."""
    return [obj for crd in provider.crds for obj in _listed(client, crd, _storage_version(crd))]


def wait_migrated(client: KubeClient, provider: ProviderUnderTest) -> None:
    """Wait until each CRD reports a single stored version."""

    def migrated() -> bool:
        for crd in provider.crds:
            stored = crd_of(client, crd)["status"]["storedVersions"]
            if stored != [_storage_version(crd)]:
                raise NotYet(f"{crd['metadata']['name']}: stored versions are {stored}")
        return True

    eventually(migrated, what="stored objects migrated")


def check_labels(client: KubeClient, provider: ProviderUnderTest) -> None:
    """Check that merged contract labels name served versions, each of them once."""
    for crd in (crd_of(client, each) for each in provider.crds):
        served = {each["name"] for each in crd["spec"]["versions"] if each["served"]}
        labels = crd["metadata"]["labels"]
        values = [text for key, text in labels.items() if _CONTRACT_LABEL.fullmatch(key)]
        named = [name for text in values for name in text.split("_") if name]
        assert sorted(named) == sorted(served), f"{crd['metadata']['name']}: {labels}"


def check_readable(
    client: KubeClient, provider: ProviderUnderTest, versions: Sequence[str]
) -> None:
    """Read every object in every version and write it back: nothing must be lost.

    A write of an unchanged object has no effect if its conversion there and back yields exactly
    the stored object: its resource version then stays the same.
    """
    settled(lambda: _resource_versions(client, provider), seconds=2, what="stored objects")
    for crd in provider.crds:
        listed = [_listed(client, crd, version) for version in versions]
        uids = [sorted(each["metadata"]["uid"] for each in found) for found in listed]
        assert all(each == uids[0] for each in uids), f"{crd['metadata']['name']}: {uids}"
        for obj in (each for found in listed for each in found):
            _write_back(client, obj)


def check_references(scenario: Scenario) -> bool:
    """Return True if all owner references name the owners' storage versions.

    Raises NotYet otherwise.
    """
    stale = stale_references(scenario)
    if stale:
        raise NotYet(f"owners in another version: {stale}")
    return True


def stale_references(scenario: Scenario) -> list[str]:
    """Return the owner references whose version is not the owner's storage version.

    Once that version is no longer served, the garbage collector cannot tell whether the owner
    exists, and deletes none of its dependents.
    """
    client, provider = scenario.client, scenario.stack.provider
    stored = {
        (crd["spec"]["group"], crd["spec"]["names"]["kind"]): _storage_version(crd)
        for crd in provider.crds
    }
    kinds = [("v1", "Secret"), ("v1", "ConfigMap")]
    kinds += [(scenario.core, kind) for kind in _CORE_KINDS]
    kinds += [(f"{group}/{version}", kind) for (group, kind), version in stored.items()]
    found = []
    for obj in (each for version, kind in kinds for each in client.list(version, kind)):
        for owner in obj["metadata"].get("ownerReferences", []):
            group, _, version = owner["apiVersion"].rpartition("/")
            if stored.get((group, owner["kind"]), version) != version:
                found.append(f"{obj['kind']} {obj['metadata']['name']} of {owner}")
    return found


def _write_back(client: KubeClient, obj: JSON) -> None:
    metadata = obj["metadata"]
    path = client.path(obj["apiVersion"], obj["kind"], metadata["name"], metadata.get("namespace"))
    for _ in range(_WRITES):
        with suppress(StaleError):  # another client has written it in between: no evidence
            _check_round_trip(client, path)
            return
    raise AssertionError(f"{path} is written all the time")


def _check_round_trip(client: KubeClient, path: str) -> None:
    before = client.request("GET", path)
    for part in ("", "/status") if "status" in before else ("",):
        after = client.request("PUT", f"{path}{part}", body=before)
        versions = [each["metadata"]["resourceVersion"] for each in (before, after)]
        assert versions[0] == versions[1], f"{path} is another one after a round trip: {before}"


def _resource_versions(client: KubeClient, provider: ProviderUnderTest) -> dict[str, str]:
    found = (each["metadata"] for each in stored_objects(client, provider))
    return {each["uid"]: each["resourceVersion"] for each in found}


def _listed(client: KubeClient, crd: JSON, version: str) -> list[JSON]:
    spec = crd["spec"]
    return client.list(f"{spec['group']}/{version}", spec["names"]["kind"])


def _storage_version(crd: JSON) -> str:
    return next(str(each["name"]) for each in crd["spec"]["versions"] if each["storage"])
