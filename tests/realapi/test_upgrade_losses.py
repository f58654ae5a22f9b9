"""What the API server refuses when clusterctl patches the CRDs of an installed release."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from capsmith.clusters.processes.kube import JSON, ApiError, KubeClient
from capsmith.clusters.processes.wait import eventually
from tests.realapi.crd_lineage import established, removed, upgraded
from tests.verify.releases import crd, violations, write

# A CRD is removed some time after its deletion: each test has a name of its own.
_NUMBERS = itertools.count(1)
V2 = "cluster.x-k8s.io/v1beta2"
SERVICE = {"namespace": "acme-system", "name": "acme-webhook"}
TEXT = {"type": "string"}


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


def _by_url(spec: Any) -> None:
    spec["conversion"]["webhook"]["clientConfig"] = {"url": "https://a.example.com"}


REFUSED: dict[str, tuple[str, Callable[[Any], object], str]] = {
    "stored-version-removed": ("UP-01", _without_stored, "status.storedVersions"),
    "former-version-removed": (
        "UP-22",
        lambda spec: spec["versions"].pop(0),
        "status.storedVersions",
    ),
    "scope": ("UP-03", lambda spec: spec.update(scope="Cluster"), "field is immutable"),
    "strategy-none": (
        "UP-13",
        lambda spec: spec.update(conversion={"strategy": "None"}),
        "should not be set when strategy is not set to Webhook",
    ),
    "service-becomes-url": ("UP-13", _by_url, "exactly one of url or service is required"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_the_crd_is_refused(name: str, api: KubeClient, installed: JSON, tmp_path: Path) -> None:
    """Proves: UP-01, UP-03, UP-13, UP-22."""
    rule, change, answer = REFUSED[name]
    # As after a release that stored objects in the other version, too.
    stored = {"storedVersions": ["v1alpha1", "v1"]}
    api.patch(installed, {"status": stored}, subresource="status")
    new = copy.deepcopy(installed)
    change(new["spec"])
    with pytest.raises(ApiError, match=answer):
        upgraded(api, new)
    assert rule in _find_rules(tmp_path, installed, new)


def _find_rules(folder: Path, old: JSON, new: JSON) -> set[str]:
    """Return the rules of which ``capsmith verify --upgrade`` finds a violation."""
    for name, document in (("old", old), ("new", new)):
        (folder / name).mkdir()
        write(folder / name, document)
    found = violations(str(folder / "new"), "--upgrade", str(folder / "old"))
    return {violation["id"] for violation in found}


def _unconverted(api: KubeClient, *versions: str) -> JSON:
    """Install a CRD without conversion that has an object, and return it."""
    group = f"losses{next(_NUMBERS)}.example.com"
    document = crd("AcmeMachine", {V2: versions[-1]}, versions, {"size": TEXT}, group=group)
    for version in document["spec"]["versions"]:
        version["selectableFields"] = [{"jsonPath": ".spec.size"}]
    upgraded(api, document)
    spec = {"providerID": "acme://1", "size": "small"}
    eventually(partial(_stores, api, _object(document, spec=spec)))
    return document


def _object(document: JSON, index: int = -1, **content: Any) -> JSON:
    spec = document["spec"]
    version = f"{spec['group']}/{spec['versions'][index]['name']}"
    metadata = {"name": "one", "namespace": "default"}
    return {"apiVersion": version, "kind": "AcmeMachine", "metadata": metadata, **content}


def _stores(api: KubeClient, obj: JSON) -> bool:
    try:
        api.apply(obj, "author")
    except (ApiError, LookupError):
        return False
    return True


def _patch_labels(api: KubeClient, document: JSON, index: int = -1) -> None:
    api.patch(_object(document, index), {"metadata": {"labels": {"a": "b"}}})


def test_a_required_status_refuses_each_write(api: KubeClient, tmp_path: Path) -> None:
    """Proves: UP-05."""
    old = _unconverted(api, "v1")
    new = copy.deepcopy(old)
    new["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["required"] = ["status"]
    upgraded(api, new)
    eventually(lambda: _is_refused(lambda: _patch_labels(api, new), "status: Required value"))
    assert _find_rules(tmp_path, old, new) == {"UP-05"}
    removed(api, [old["metadata"]["name"]])


def _is_refused(request: Callable[[], object], answer: str) -> bool:
    try:
        request()
    except ApiError as error:
        return answer in error.message
    return False


def test_a_write_in_a_new_version_loses_values(api: KubeClient, tmp_path: Path) -> None:
    """Proves: UP-25."""
    old = _unconverted(api, "v1alpha1")
    new = copy.deepcopy(old)
    (version,) = copy.deepcopy(new["spec"]["versions"])
    version.update(name="v1", storage=False)
    version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"].pop("size")
    version.pop("selectableFields")
    new["spec"]["versions"].append(version)
    upgraded(api, new)
    before = api.get(_object(old)["apiVersion"], "AcmeMachine", "one", "default")
    assert before["spec"]["size"] == "small"
    eventually(lambda: not _is_refused(lambda: _patch_labels(api, new), ""))
    after = api.get(_object(old)["apiVersion"], "AcmeMachine", "one", "default")
    assert after["spec"] == {"providerID": "acme://1"}
    assert _find_rules(tmp_path, old, new) == {"UP-25"}
    removed(api, [old["metadata"]["name"]])


def test_a_field_is_not_selectable_any_longer(api: KubeClient, tmp_path: Path) -> None:
    """Proves: UP-23."""
    old = _unconverted(api, "v1")
    new = copy.deepcopy(old)
    new["spec"]["versions"][0]["selectableFields"] = []
    upgraded(api, new)
    path = api.path(_object(new)["apiVersion"], "AcmeMachine", namespace="default")
    selector = {"fieldSelector": "spec.size=small"}
    eventually(
        lambda: _is_refused(
            lambda: api.request("GET", path, query=selector), "field label not supported"
        )
    )
    assert _find_rules(tmp_path, old, new) == {"UP-23"}
    removed(api, [old["metadata"]["name"]])


def test_a_conversion_without_its_service_refuses_reads(api: KubeClient, tmp_path: Path) -> None:
    """Proves: UP-14."""
    old = _unconverted(api, "v1alpha1", "v1")
    new = copy.deepcopy(old)
    new["spec"]["conversion"] = _old()["spec"]["conversion"]
    upgraded(api, new)
    path = api.path(_object(new, 0)["apiVersion"], "AcmeMachine", "one", "default")
    api.retries_webhooks = False
    try:
        eventually(lambda: _is_refused(lambda: api.request("GET", path), "conversion webhook"))
    finally:
        del api.retries_webhooks
    assert _find_rules(tmp_path, old, new) == {"UP-14"}
    removed(api, [old["metadata"]["name"]])


@pytest.mark.parametrize("name", ["kind", "listKind", "singular", "shortNames"])
def test_a_name_of_a_crd_that_stays_is_taken(
    name: str, api: KubeClient, installed: JSON, tmp_path: Path
) -> None:
    """Proves: UP-24."""
    new = copy.deepcopy(installed)
    names = new["spec"]["names"]
    kept = {name: names[name] if name != "shortNames" else [names["singular"]]}
    names.update(kind="Other", listKind="OtherList", plural="others", singular="other")
    names.update(kept)
    new["metadata"]["name"] = f"others.{new['spec']['group']}"
    upgraded(api, new)
    eventually(lambda: _conditions(api, new).get("NamesAccepted") == "False")
    assert _conditions(api, new).get("Established") != "True"
    assert _find_rules(tmp_path, installed, new) == {"UP-04", "UP-24"}
    removed(api, [new["metadata"]["name"]])


def _conditions(api: KubeClient, document: JSON) -> dict[str, str]:
    found = api.get(document["apiVersion"], document["kind"], document["metadata"]["name"])
    conditions = found.get("status", {}).get("conditions") or []
    return {each["type"]: each["status"] for each in conditions}


def test_what_the_new_crd_does_not_mention_stays(api: KubeClient, installed: JSON) -> None:
    new = copy.deepcopy(installed)
    new["metadata"]["labels"] = {}
    del new["spec"]["conversion"]
    now = upgraded(api, new)
    assert now["metadata"]["labels"][V2] == "v1"
    assert now["spec"]["conversion"]["strategy"] == "Webhook"
