"""Identities that are derived from one another, and the order in which objects are deleted.

A cluster uses a role, which another role assumes, which an identity with a Secret assumes.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from capsmith.clusters.processes.kube import JSON, KubeClient
from capsmith.clusters.processes.wait import NotYet, eventually
from capsmith.judge.running.history import History, WatchedKind
from tests.e2e.scenario import Scenario, condition, infrastructure_cluster


@dataclass(frozen=True)
class Chain:
    """The identities from the one that a cluster uses to the one with a Secret, as applied."""

    role: JSON
    middle: JSON
    base: JSON
    secret: JSON

    @property
    def objects(self) -> tuple[JSON, ...]:
        """Return the identities, each before its source, and the Secret."""
        return self.role, self.middle, self.base, self.secret

    def use_in(self, scenario: Scenario, documents: list[JSON]) -> None:
        """Make the rendered infrastructure cluster use the role."""
        reference = {"kind": self.role["kind"], "name": self.role["metadata"]["name"]}
        infrastructure_cluster(scenario, documents)["spec"]["identityRef"] = reference

    def wait_kept(self, scenario: Scenario) -> None:
        """Wait until finalizers keep all objects, and the role has recorded its sources."""
        group = self.role["apiVersion"].partition("/")[0]
        sources = ",".join(f"{x['kind']}/{x['metadata']['name']}" for x in (self.middle, self.base))

        def kept() -> bool:
            found = [find(scenario, each) or {"metadata": {}} for each in self.objects]
            finalizers = [each["metadata"].get("finalizers") for each in found]
            recorded = found[0]["metadata"].get("annotations", {}).get(f"{group}/sources")
            if not all(finalizers) or recorded != sources:
                raise NotYet(f"finalizers {finalizers}, sources {recorded}")
            return True

        eventually(kept, what="all identities kept")


def add_chain(scenario: Scenario, middle: JSON) -> Chain:
    """Apply a chain of identities like the samples; ``middle`` are other fields of the middle."""
    samples = copy.deepcopy(scenario.stack.provider.prerequisites)
    role = next(each for each in samples if "sourceIdentityRef" in each.get("spec", {}))
    base_kind = role["spec"]["sourceIdentityRef"]["kind"]
    base = next(each for each in samples if each["kind"] == base_kind)
    secret = next(each for each in samples if each["kind"] == "Secret")
    between = copy.deepcopy(role)
    chain = Chain(role, between, base, secret)
    for each, name in zip(chain.objects, ("role", "middle", "base", "secret"), strict=True):
        each["metadata"]["name"] = f"{scenario.name}-{name}"
    base["spec"]["secretRef"]["name"] = secret["metadata"]["name"]
    between["spec"] |= {**middle, "sourceIdentityRef": _refer_to(base)}
    role["spec"]["sourceIdentityRef"] = _refer_to(between)
    for each in reversed(chain.objects):
        scenario.client.apply(each)
    return chain


def _refer_to(identity: JSON) -> JSON:
    return {"kind": identity["kind"], "name": identity["metadata"]["name"]}


def find(scenario: Scenario, obj: JSON) -> JSON | None:
    """Return the current state of an object, or None if it does not exist."""
    metadata = obj["metadata"]
    return scenario.client.find(
        obj["apiVersion"], obj["kind"], metadata["name"], metadata.get("namespace")
    )


def remove_forcibly(scenario: Scenario, obj: JSON) -> None:
    """Delete an object that a finalizer keeps, as a user does who removes the finalizer."""
    # In this order the manager cannot add the finalizer again.
    scenario.client.delete(obj)
    scenario.client.patch(obj, {"metadata": {"finalizers": None}})
    assert find(scenario, obj) is None


def wait_in_use(scenario: Scenario, identity: JSON) -> None:
    """Wait until an identity in deletion reports that objects use it."""

    def in_use() -> bool:
        found = condition(find(scenario, identity) or {}, "Ready")
        if found is None or (found["status"], found["reason"]) != ("False", "Deleting"):
            raise NotYet(f"Ready: {found}")
        return "in use" in found["message"]

    eventually(in_use, what=f"{identity['metadata']['name']} is kept")


def wait_gone(scenario: Scenario, *objects: JSON) -> None:
    """Wait until none of the objects exists."""

    def gone() -> bool:
        left = [each["metadata"]["name"] for each in objects if find(scenario, each) is not None]
        if left:
            raise NotYet(f"still there: {left}")
        return True

    eventually(gone, what="identities gone")


class Deletions:
    """When objects were deleted, as resource versions, which order the changes of all kinds."""

    def __init__(self, objects: History, secrets: History, kinds: list[str]) -> None:
        """``kinds`` are those of the infrastructure, without templates."""
        self._objects = objects
        self._secrets = secrets
        self._kinds = kinds

    def check_order(self, chain: Chain) -> None:
        """Check that the chain was kept for all infrastructure, and the Secret for its identity."""
        names = [(kind, name) for kind in self._kinds for name in self._objects.all_names(kind)]
        infrastructure = [self._deleted_at(self._objects, *each) for each in names]
        assert len(infrastructure) >= 2, names
        identities = [
            self._deleted_at(self._objects, each["kind"], each["metadata"]["name"])
            for each in (chain.role, chain.middle, chain.base)
        ]
        secret = self._deleted_at(self._secrets, "Secret", chain.secret["metadata"]["name"])
        assert max(infrastructure) < min(*identities, secret), (infrastructure, identities, secret)
        assert secret < identities[-1], "the Secret is released before its identity is gone"

    def _deleted_at(self, history: History, kind: str, name: str) -> int:
        assert history.wait(lambda: history.latest(kind, name) is None, 60.0), f"{kind} {name}"
        last = history.list_records(0.0)[kind, name][-1]
        return int(last.obj["metadata"]["resourceVersion"])


@contextmanager
def record_deletions(scenario: Scenario, chain: Chain) -> Iterator[Deletions]:
    """Record the deletions of the chain and of all infrastructure that exists or follows."""
    provider, shared = scenario.stack.provider, scenario.client
    # Its own, because a history that stops ends all watches of its client.
    client = KubeClient(shared.server, shared.credentials)
    crds = [each for each in provider.crds if not _kind_of(each).endswith("Template")]
    watched = [WatchedKind(_stored_version_of(each), _kind_of(each)) for each in crds]
    objects = History(client, scenario.namespace, watched)
    secrets = History(client, chain.secret["metadata"]["namespace"], [WatchedKind("v1", "Secret")])
    namespaced = [_kind_of(each) for each in crds if each["spec"]["scope"] == "Namespaced"]
    try:
        for history in (objects, secrets):
            history.start()
        for history, each in (
            (objects, chain.role),
            (objects, chain.base),
            (secrets, chain.secret),
        ):
            _wait_recorded(history, each)
        for machine in scenario.machines():
            _wait_recorded(objects, scenario.infrastructure_of(machine))
        yield Deletions(objects, secrets, namespaced)
    finally:
        for history in (objects, secrets):
            history.stop()
        client.close()


def _wait_recorded(history: History, obj: JSON) -> None:
    kind, name = obj["kind"], obj["metadata"]["name"]
    assert history.wait(lambda: history.latest(kind, name), 60.0), f"{kind} {name}"


def _kind_of(crd: JSON) -> str:
    return str(crd["spec"]["names"]["kind"])


def _stored_version_of(crd: JSON) -> str:
    spec = crd["spec"]
    stored = next(each["name"] for each in spec["versions"] if each["storage"])
    return f"{spec['group']}/{stored}"
