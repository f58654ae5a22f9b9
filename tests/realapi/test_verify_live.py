"""`capsmith verify --live` on a real API server: what it finds, and that nothing stays."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from capsmith.clusters.processes.kube import JSON, KubeClient
from capsmith.clusters.processes.servers import ApiServer
from capsmith.judge.release.live import Questions, prepare_questions
from capsmith.judge.release.model import VerifyOptions
from capsmith.judge.release.release import SourceFile, read_release
from capsmith.judge.review import INSTALLED_BY, Review
from tests.realapi.mutating import mutating
from tests.verify.places import run
from tests.verify.releases import crd, write

GROUP = "infrastructure.live.example.com"
KIND = "LiveMachineTemplate"
NAME = f"livemachinetemplates.{GROUP}"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SPEC: dict[str, Any] = {
    "size": {"type": "string", "enum": ["small", "large"], "default": "small"},
    "limit": {"type": "integer"},
    "names": {"type": "array", "items": {"type": "string"}},
}
RULE = {"rule": "!has(self.limit) || self.limit < 9", "message": "the limit is too high"}


def kind() -> JSON:
    document = crd(KIND, {"cluster.x-k8s.io/v1beta2": "v1"}, ("v1",), copy.deepcopy(SPEC), GROUP)
    schema = document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["x-kubernetes-validations"] = [RULE]
    return document


def template(**spec: Any) -> JSON:
    metadata = {"name": "live"}
    return {"apiVersion": f"{GROUP}/v1", "kind": KIND, "metadata": metadata, "spec": spec}


class Live:
    """A release in a folder, and the server that is asked about it."""

    def __init__(self, server: ApiServer, folder: Path) -> None:
        self.client: KubeClient = server.client
        self.folder = folder
        self._kubeconfig = server.kubeconfig

    def write(self, crds: list[JSON], objects: list[JSON]) -> None:
        write(self.folder, *crds)
        write(self.folder, *objects, name="cluster-template.yaml")

    def ask(self, *arguments: str) -> JSON:
        role = f"{KIND}=InfraMachineTemplate"
        options = ("--live", "--kubeconfig", str(self._kubeconfig), "--role", role)
        result = run(str(self.folder), *options, "--select", "LV", "--format", "json", *arguments)
        assert result.exit_code in (0, 1), result.output
        return dict(json.loads(result.output))

    def found(self, *arguments: str) -> list[tuple[str, str]]:
        violations = self.ask(*arguments)["violations"]
        return [(each["id"], each["message"]) for each in violations]

    def names(self) -> set[str]:
        """Return CRDs of this module's group; those of other tests may still be in deletion."""
        items = self.client.request("GET", CRDS)["items"]
        names = {item["metadata"]["name"] for item in items}
        return {name for name in names if name.endswith(f".{GROUP}")}

    def questions(self) -> Questions:
        files = [SourceFile(str(p), p.read_text()) for p in sorted(self.folder.glob("*.yaml"))]
        options = VerifyOptions((), roles={KIND: "InfraMachineTemplate"})
        return prepare_questions(read_release(files), options, ["InfraMachineTemplate"])


@pytest.fixture
def live(api_server: ApiServer, tmp_path: Path) -> Iterator[Live]:
    made = Live(api_server, tmp_path)
    made.write([kind()], [template(size="large")])
    before = made.names()
    yield made
    assert made.names() == before


@pytest.fixture
def installed(live: Live) -> Iterator[JSON]:
    """Return the CRD of the release, which is installed in the cluster during the test."""
    with_crd(live.client, kind())
    yield live.client.request("GET", f"{CRDS}/{NAME}")
    live.client.request("DELETE", f"{CRDS}/{NAME}")
    Review(live.client).wait_removed(NAME)


def with_crd(client: KubeClient, document: JSON) -> None:
    client.request("POST", CRDS, body=document)
    Review(client).wait_decided(document["metadata"]["name"])


def test_missing_crds_are_not_installed_unasked(live: Live) -> None:
    answer = live.ask()
    assert answer["violations"] == []
    assert any("--install-crds" in text for text in answer["unanswered"])


def test_good_release_has_no_violation(live: Live) -> None:
    answer = live.ask("--install-crds")
    assert answer["violations"] == []
    assert answer["unanswered"] == []


def test_crd_that_costs_too_much_is_refused(live: Live) -> None:
    """The cost of rules is one of the things that only the server computes.

    Proves: LV-01.
    """
    document = kind()
    schema = document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    rule = "self.names.all(a, self.names.all(b, self.names.all(c, a != b || b != c)))"
    schema["x-kubernetes-validations"] = [{"rule": rule}]
    live.write([document], [])
    ((id, message),) = live.found("--install-crds")
    assert id == "LV-01"
    assert "exceeds budget" in message


def test_crd_with_names_of_another_is_not_established(live: Live, installed: JSON) -> None:
    """Proves: LV-02."""
    other = kind()
    other["metadata"]["name"] = f"others.{GROUP}"
    other["spec"]["names"] = {**other["spec"]["names"], "plural": "others", "singular": "other"}
    live.write([other], [])
    found = live.found("--install-crds")
    assert ("LV-02", "NamesAccepted is False") in [
        (id, message.partition(": ")[2][:22]) for id, message in found
    ]


@pytest.mark.parametrize(
    ("spec", "reason"),
    [({"limit": 10}, "the limit is too high"), ({"undeclared": 1}, "not declared in schema")],
)
def test_object_that_topology_cannot_apply_is_found(live: Live, spec: Any, reason: str) -> None:
    """Proves: LV-03."""
    live.write([kind()], [template(**spec)])
    ((id, message),) = live.found("--install-crds")
    assert id == "LV-03"
    assert reason in message


def test_objects_with_unknown_values_are_not_refused(live: Live) -> None:
    live.write([kind()], [template(size="${SIZE}")])
    assert live.found("--install-crds") == []


def test_webhook_that_replaces_values_is_found(
    live: Live, installed: JSON, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Proves: LV-04."""
    live.write([kind()], [template(size="large", limit=3)])
    patch: list[JSON] = [
        {"op": "replace", "path": "/spec/limit", "value": 4},
        {"op": "add", "path": "/spec/names", "value": ["added"]},
    ]
    folder = tmp_path_factory.mktemp("mutating")
    path = f"/apis/{GROUP}/v1/namespaces/default/livemachinetemplates"

    def is_mutated() -> bool:
        body = template(limit=3)
        answer = live.client.request("POST", path, body=body, query={"dryRun": "All"})
        return bool(answer["spec"]["limit"] == 4)

    with mutating(live.client, GROUP, "livemachinetemplates", patch, folder, is_mutated):
        found = live.found()
    assert found == [
        ("LV-04", f"{KIND} live: the API server replaces `3` with `4` in spec.limit"),
    ]


def test_rights_that_core_lacks_are_found(live: Live, installed: JSON) -> None:
    """Proves: LV-05."""
    account = {"namespace": "capi-system", "name": "capi-manager"}
    role: JSON = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "live-core"}}
    rules = [{"apiGroups": [GROUP], "resources": ["*"], "verbs": ["get", "list", "watch"]}]
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole"}
    made: list[JSON] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "capi-system"}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account},
        {**role, "kind": "ClusterRole", "rules": rules},
        {
            **role,
            "kind": "ClusterRoleBinding",
            "roleRef": {**reference, "name": "live-core"},
            "subjects": [{"kind": "ServiceAccount", **account}],
        },
    ]
    assert any("core is not installed" in text for text in live.ask()["unanswered"])
    for document in made:
        live.client.apply(document)
    try:
        ((id, message),) = live.found()
        assert id == "LV-05"
        assert message == (
            "ServiceAccount capi-system/capi-manager cannot create, update, patch, delete "
            f"livemachinetemplates.{GROUP}"
        )
        rules[0]["verbs"] = ["*"]
        live.client.apply(made[2])
        assert live.found() == []
    finally:
        for document in reversed(made):
            live.client.delete(document)


def test_crd_of_the_cluster_stays_as_it_is(live: Live, installed: JSON) -> None:
    changed = kind()
    changed["metadata"]["labels"]["changed"] = "true"
    live.write([changed], [template(size="large")])
    assert live.found("--install-crds") == []
    assert live.client.request("GET", f"{CRDS}/{NAME}") == installed


@pytest.mark.parametrize("name", ["../nodes", "a?dryRun=", "a/status", "a#", "", "a\nb", "ä"])
def test_names_do_not_become_other_requests(live: Live, name: str) -> None:
    odd, metadata = kind(), {"name": name}
    odd["metadata"] |= metadata
    live.write([odd], [{**template(), "metadata": metadata}])
    answer = live.ask("--install-crds")
    assert answer["violations"] == []
    assert len(answer["unanswered"]) == 2


@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_interrupted_review_removes_its_crds(live: Live, method: str) -> None:
    """The request was sent, and its effect is unknown."""
    with pytest.raises(SystemExit):
        Review(Interrupted(live.client, method), install=True).ask(live.questions())


def test_crd_of_another_client_stays(live: Live) -> None:
    class Racing(Passing):
        def request(self, method: str, path: str, **options: Any) -> JSON:
            if method == "POST" and path == CRDS and "query" not in options:
                self.inner.request("POST", CRDS, body=kind())
            return self.inner.request(method, path, **options)

    try:
        with pytest.raises(Exception, match="already exists"):
            Review(Racing(live.client), install=True).ask(live.questions())
        current = live.client.request("GET", f"{CRDS}/{NAME}")
        assert INSTALLED_BY not in current["metadata"].get("annotations", {})
    finally:
        live.client.request("DELETE", f"{CRDS}/{NAME}")
        Review(live.client).wait_removed(NAME)


class Passing(KubeClient):
    """Passes every request on."""

    def __init__(self, inner: KubeClient) -> None:
        super().__init__(inner.server, inner.credentials)
        self.inner = inner


class Interrupted(Passing):
    """Ends like a process with SIGTERM after the first write of a kind that is no dry run's."""

    def __init__(self, inner: KubeClient, method: str) -> None:
        super().__init__(inner)
        self._method = method

    def request(self, method: str, path: str, **options: Any) -> JSON:
        answer = self.inner.request(method, path, **options)
        if method == self._method and (method == "PATCH" or "query" not in options):
            raise SystemExit(143)
        return answer
