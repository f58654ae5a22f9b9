"""What the API server refuses when clusterctl patches the CRDs of an installed release."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from capsmith.clusters.processes.kube import JSON, ApiError, KubeClient
from capsmith.clusters.processes.wait import eventually
from tests.realapi.crd_lineage import established, removed, upgraded
from tests.verify.releases import crd

# A CRD is removed some time after its deletion: each test has a name of its own.
_NUMBERS = itertools.count(1)
V2 = "cluster.x-k8s.io/v1beta2"
SERVICE = {"namespace": "acme-system", "name": "acme-webhook"}


def _old() -> JSON:
    group = f"losses{next(_NUMBERS)}.example.com"
    document = crd("AcmeMachine", {V2: "v1"}, ("v1alpha1", "v1"), group=group)
    client = {"service": SERVICE, "caBundle": ""}
    webhook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
    document["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    return document


@pytest.fixture
def installed(api: KubeClient) -> Iterator[JSON]:
    """Return the old release's CRD, once it is established; before that, even scope may change."""
    old = _old()
    upgraded(api, old)
    eventually(lambda: established(api, old["metadata"]["name"]))
    yield old
    removed(api, [old["metadata"]["name"]])


def _without_stored(spec: Any) -> None:
    spec["versions"].pop()
    spec["versions"][0]["storage"] = True


REFUSED: dict[str, tuple[Callable[[Any], object], str]] = {
    "UP-01": (_without_stored, "status.storedVersions"),
    "UP-03": (lambda spec: spec.update(scope="Cluster"), "field is immutable"),
    "UP-13": (
        lambda spec: spec.update(conversion={"strategy": "None"}),
        "should not be set when strategy is not set to Webhook",
    ),
}


@pytest.mark.parametrize("rule", REFUSED)
def test_the_crd_is_refused(rule: str, api: KubeClient, installed: JSON) -> None:
    change, answer = REFUSED[rule]
    new = copy.deepcopy(installed)
    change(new["spec"])
    with pytest.raises(ApiError, match=answer):
        upgraded(api, new)


def test_what_the_new_crd_does_not_mention_stays(api: KubeClient, installed: JSON) -> None:
    new = copy.deepcopy(installed)
    new["metadata"]["labels"] = {}
    del new["spec"]["conversion"]
    now = upgraded(api, new)
    assert now["metadata"]["labels"][V2] == "v1"
    assert now["spec"]["conversion"]["strategy"] == "Webhook"
