"""Kinds that implement Resource on a real API server: owners, pauses, and a leader that dies.

The identities that resources use are derived from one another.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
import yaml

from capsmith.clusters.processes.kube import JSON, Credentials, KubeClient
from capsmith.clusters.processes.pki import Pki
from capsmith.clusters.processes.wait import eventually
from capsmith.commands.generate import generate
from tests.e2e.releases import NEWEST
from tests.e2e.tools.required import required_toolbox
from tests.realapi.conftest import NewServer
from tests.realapi.managers import Installation, install_core_crds

SERIES = NEWEST
CORE = "cluster.x-k8s.io/v1beta2"
OWN = "infrastructure.cluster.x-k8s.io/v1alpha1"
NAMESPACE = "default"
GROUPS = 60
DESCRIPTION = """
capsmith: 1
name: haven
repository: https://github.com/example/cluster-api-provider-haven
contracts: [v1beta2]
releases: {v0.1: v1beta2}
infrastructure:
  HavenCluster: {implements: InfraCluster}
  HavenMachine: {implements: InfraMachine}
  HavenSecurityGroup:
    implements: Resource
    features: {observedGeneration: true}
    spec:
      rules: "string[]!"
    status:
      groupID: string
  HavenImage:
    implements: Resource
    scope: Cluster
    spec:
      url: string!
credentials:
  - HavenIdentity
  - {kind: HavenRole, secret: false, sources: [HavenIdentity, HavenRole]}
"""


@dataclass(frozen=True)
class Place:
    """An API server with the provider installed, and its simulated cloud."""

    client: KubeClient
    manager: KubeClient
    """With the permissions of the manager, as the author's code has them."""
    installation: Installation
    cloud: Path

    def existing(self) -> list[str]:
        return [path.stem for path in (self.cloud / "resources").glob("*.json")]

    def created(self) -> list[str]:
        """Return the resources that were ever created, once for each creation."""
        lines = (self.cloud / "journal.log").read_text().splitlines()
        return [line.rpartition(" ")[2] for line in lines if line.startswith("create resource ")]

    def groups(self) -> list[JSON]:
        return self.client.list(OWN, "HavenSecurityGroup", NAMESPACE)

    def ready(self) -> int:
        return sum(_ready(group) for group in self.groups())


@pytest.fixture(scope="module")
def place(new_server: NewServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    tools = required_toolbox("the tests with core's CRDs", ["k8s", f"capi-{SERIES}"])
    folder = tmp_path_factory.mktemp("resource")
    repository, pki, cloud = folder / "repository", Pki(folder / "pki"), folder / "cloud"
    description = folder / "provider.yaml"
    description.write_text(DESCRIPTION)
    assert generate(description, repository).exit_code == 0
    server = new_server("resource", pki)
    server.start()
    try:
        names = ("clusters.cluster.x-k8s.io", "machines.cluster.x-k8s.io")
        install_core_crds(server.client, tools, SERIES, *names)
        environment = {"CAPSMITH_SIMULATED_CLOUD_DIR": str(cloud)}
        installation = Installation(server, pki, repository, "config", environment=environment)
        for file in ("haven_identity", "haven_image"):
            for sample in yaml.safe_load_all(
                (repository / "config/samples" / f"{file}.yaml").read_text()
            ):
                server.client.apply(sample)
        manager = KubeClient(server.url, Credentials(pki.ca, token=installation.token))
        yield Place(server.client, manager, installation, cloud)
        manager.close()
    finally:
        server.stop()


def test_resources_of_a_cluster_outlive_a_crash_and_are_deleted(place: Place) -> None:
    """The leader is killed while they are created.

    Proves: CRD-14, SM-01, SM-08, SM-09, RB-04, RB-06.
    """
    with place.installation.managers(2) as (first, second):
        image = "HavenImage", "havenimage"
        eventually(lambda: _ready(place.client.get(OWN, *image)), timeout=120)
        owner = _add_cluster(place.client)
        _add_group(place, owner, 0)
        with ThreadPoolExecutor(4) as threads:
            many = threads.map(lambda number: _add_group(place, owner, number), range(1, GROUPS))
            eventually(lambda: place.ready() > GROUPS // 4, timeout=120, interval=0.1)
            first.process.kill()
            place.installation.expire_lease()
            list(many)
        eventually(lambda: place.ready() == GROUPS, timeout=120)
        assert len(place.created()) == len(set(place.created())) == GROUPS + 1
        identity = {"kind": "HavenIdentity", "name": "haven"}
        assert all(group["spec"]["identityRef"] == identity for group in place.groups())

        paused, *others = place.groups()
        _check_the_generation(place, others[0])
        _check_the_pause(place, paused)

        for group in others:
            place.manager.delete(group)
        eventually(lambda: not place.groups(), timeout=120)
        place.client.delete(place.client.get(OWN, *image))
        eventually(lambda: place.client.find(OWN, *image) is None, timeout=120)
        assert place.existing() == []
        assert second.complaints() == []


def test_a_chain_of_identities_without_its_middle_is_released_by_its_last_user(
    place: Place,
) -> None:
    """Its middle is removed by force, and the leader killed before the others are deleted.

    tests/e2e/test_ec2.py has such chains with core and the garbage collector.

    Proves: SM-09, RB-04.
    """
    client = place.client
    with place.installation.managers(2) as (first, second):
        chain = role, middle, base, secret = _add_chain(place)
        spec = {"rules": ["ssh"], "identityRef": {"kind": "HavenRole", "name": "role"}}
        group = client.create(_object(OWN, "HavenSecurityGroup", "chained", spec))
        eventually(lambda: _ready(_group(place, "chained")), timeout=120)
        sources = "HavenRole/middle,HavenIdentity/base"
        eventually(lambda: sources in str(_find(client, role)), timeout=120, what="the record")
        eventually(lambda: all(_finalizers(client, each) for each in chain), timeout=120)
        client.delete(middle)
        client.patch(middle, {"metadata": {"finalizers": None}})
        first.process.kill()
        for each in (secret, base, role):
            client.delete(each)
        place.installation.expire_lease()
        for each in (base, role):
            eventually(partial(_is_kept, client, each), timeout=120, what="an identity is kept")
        assert _find(client, secret) is not None
        client.delete(group)
        eventually(lambda: not any(_find(client, each) for each in (group, *chain)), timeout=120)
        assert second.complaints() == []


def _add_chain(place: Place) -> tuple[JSON, JSON, JSON, JSON]:
    """Create a role, the role that assumes it, the identity that assumes that one, its Secret."""
    namespace = place.installation.user.split(":")[2]
    secret: JSON = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "chain", "namespace": namespace},
        "stringData": {"token": "any"},
    }
    base = {"kind": "HavenIdentity", "name": "base"}
    middle = {"kind": "HavenRole", "name": "middle"}
    identities = [
        {"apiVersion": OWN, "kind": kind, "metadata": {"name": name}, "spec": spec}
        for kind, name, spec in (
            ("HavenRole", "role", {"sourceIdentityRef": middle, "allowedNamespaces": {}}),
            ("HavenRole", "middle", {"sourceIdentityRef": base, "allowedNamespaces": {}}),
            ("HavenIdentity", "base", {"secretRef": {"name": "chain"}, "allowedNamespaces": {}}),
        )
    ]
    role, between, first = map(place.client.create, identities)
    return role, between, first, place.client.create(secret)


def _find(client: KubeClient, obj: JSON) -> JSON | None:
    metadata = obj["metadata"]
    return client.find(obj["apiVersion"], obj["kind"], metadata["name"], metadata.get("namespace"))


def _finalizers(client: KubeClient, obj: JSON) -> list[str]:
    return list((_find(client, obj) or {"metadata": {}})["metadata"].get("finalizers", ()))


def _is_kept(client: KubeClient, identity: JSON) -> bool:
    """Report whether an identity in deletion shows that an object uses it."""
    found = (_find(client, identity) or {}).get("status", {}).get("conditions", ())
    return any(
        (each["type"], each["reason"]) == ("Ready", "Deleting") and "in use" in each["message"]
        for each in found
    )


def _check_the_generation(place: Place, group: JSON) -> None:
    """The status follows each change of the spec, the identity that the manager wrote included."""
    assert group["status"]["observedGeneration"] == group["metadata"]["generation"] > 1
    changed = place.client.patch(group, {"spec": {"rules": ["ssh", "https"]}})
    generation, name = changed["metadata"]["generation"], group["metadata"]["name"]
    assert generation == group["metadata"]["generation"] + 1
    eventually(
        lambda: _group(place, name)["status"]["observedGeneration"] == generation, timeout=60
    )


def _check_the_pause(place: Place, paused: JSON) -> None:
    """A group of a paused Cluster stays, while another one is deleted after it."""
    place.client.create(_object(OWN, "HavenSecurityGroup", "alone", {"rules": ["ssh"]}))
    eventually(lambda: place.ready() == GROUPS + 1, timeout=120)
    _pause(place.client, True)
    name = paused["metadata"]["name"]
    eventually(lambda: _has(_group(place, name), "Paused"), timeout=120)
    place.client.delete(paused)
    place.client.delete(_group(place, "alone"))
    eventually(lambda: len(place.groups()) == GROUPS, timeout=120)
    assert len(place.existing()) == GROUPS + 1
    assert "deletionTimestamp" in _group(place, name)["metadata"]
    _pause(place.client, False)
    eventually(lambda: len(place.groups()) == GROUPS - 1, timeout=120)
    assert len(place.existing()) == GROUPS


def _group(place: Place, name: str) -> JSON:
    return place.client.get(OWN, "HavenSecurityGroup", name, NAMESPACE)


def _add_cluster(client: KubeClient) -> JSON:
    reference = {"apiGroup": OWN.partition("/")[0], "kind": "HavenCluster", "name": "c1"}
    cluster = client.create(_object(CORE, "Cluster", "c1", {"infrastructureRef": reference}))
    identity = {"kind": "HavenIdentity", "name": "haven"}
    own = _object(OWN, "HavenCluster", "c1", {"identityRef": identity})
    own["metadata"]["ownerReferences"] = [_reference(cluster)]
    return client.create(own)


def _add_group(place: Place, owner: JSON, number: int) -> None:
    """As the author's code does, with the permissions of the manager."""
    group = _object(OWN, "HavenSecurityGroup", f"g{number}", {"rules": ["ssh"]})
    block = {"controller": True, "blockOwnerDeletion": True}
    group["metadata"]["ownerReferences"] = [{**_reference(owner), **block}]
    place.manager.create(group)


def _pause(client: KubeClient, paused: bool) -> None:
    client.patch(client.get(CORE, "Cluster", "c1", NAMESPACE), {"spec": {"paused": paused}})


def _reference(owner: JSON) -> JSON:
    names = {name: owner["metadata"][name] for name in ("name", "uid")}
    return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], **names}


def _ready(obj: JSON) -> bool:
    return _has(obj, "Ready")


def _has(obj: JSON, condition: str) -> bool:
    found = (obj.get("status") or {}).get("conditions") or ()
    return any(each["type"] == condition and each["status"] == "True" for each in found)


def _object(api_version: str, kind: str, name: str, spec: JSON) -> JSON:
    metadata = {"namespace": NAMESPACE, "name": name}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}
