"""What a real API server does with CRDs and objects that a rule forbids."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from capsmith.clusters.processes.kube import JSON, ApiError, KubeClient
from capsmith.clusters.processes.wait import eventually
from tests.realapi.crd_lineage import removed, upgraded
from tests.verify.releases import crd, violations, write

# A CRD is removed some time after its deletion: each test has a name of its own.
_NUMBERS = itertools.count(1)
V2 = "cluster.x-k8s.io/v1beta2"
TEXT = {"type": "string"}
RBAC, ADMISSION = "rbac.authorization.k8s.io/v1", "admissionregistration.k8s.io/v1"


def _document(*versions: str, spec: JSON | None = None) -> JSON:
    group = f"effects{next(_NUMBERS)}.example.com"
    return crd("AcmeMachine", {V2: versions[-1]}, versions, spec, group=group)


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


def _refusal(request: Callable[[], object]) -> str:
    try:
        request()
    except ApiError as error:
        return f"{error.status} {error.message}"
    return ""


def _install(api: KubeClient, document: JSON, index: int = -1, **content: Any) -> JSON:
    """Install a CRD, and return its object once that is stored."""
    upgraded(api, document)
    obj = _object(document, index, **content)
    eventually(partial(_stores, api, obj), what="the object is stored")
    return obj


def _rules(folder: Path, *documents: JSON, old: JSON | None = None) -> set[str]:
    (folder / "new").mkdir()
    path, options = write(folder / "new", *documents), ["--role", "AcmeMachine=InfraMachine"]
    if old is not None:
        (folder / "old").mkdir()
        options += ["--upgrade", str(write(folder / "old", old))]
    return {each["id"] for each in violations(str(path), *options)}


def test_status_without_the_subresource(api: KubeClient, tmp_path: Path) -> None:
    """Proves: CRD-06."""
    document = _document("v1")
    del document["spec"]["versions"][0]["subresources"]
    obj = _install(api, document, spec={}, status={"initialization": {"provisioned": True}})
    status = {"status": {"initialization": {"provisioned": False}}}
    assert _refusal(lambda: api.patch(obj, status, subresource="status")).startswith("404")
    # Who may write spec may write status.
    stored = api.get(obj["apiVersion"], "AcmeMachine", "one", "default")
    assert stored["status"] == {"initialization": {"provisioned": True}}
    assert "CRD-06" in _rules(tmp_path, document)
    removed(api, [document["metadata"]["name"]])


def test_an_older_version_loses_fields(api: KubeClient, tmp_path: Path) -> None:
    """Proves: CRD-21."""
    document = _document("v1alpha1", "v1", spec={"size": TEXT})
    older = document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    older["properties"]["spec"] = {"type": "object", "properties": {"providerID": TEXT}}
    obj = _install(api, document, spec={"providerID": "acme://1", "size": "small"})
    path = api.path(_object(document, 0)["apiVersion"], "AcmeMachine", "one", "default")
    api.request("PUT", path, body=api.request("GET", path))
    assert api.get(obj["apiVersion"], "AcmeMachine", "one", "default")["spec"] == {
        "providerID": "acme://1"
    }
    assert "CRD-21" in _rules(tmp_path, document)
    removed(api, [document["metadata"]["name"]])


def test_a_name_with_a_dot(api: KubeClient, tmp_path: Path) -> None:
    """Proves: CRD-22."""
    document = _document("v1", spec={"network.id": TEXT})
    obj = _install(api, document, spec={"network.id": "a"})
    nested = {**obj, "spec": {"network": {"id": "b"}}}
    assert "field not declared in schema" in _refusal(lambda: api.apply(nested, "author"))
    assert api.patch(obj, {"spec": nested["spec"]})["spec"] == {"network.id": "a"}
    assert "CRD-22" in _rules(tmp_path, document)
    removed(api, [document["metadata"]["name"]])


def test_an_address_without_its_type(api: KubeClient, tmp_path: Path) -> None:
    """Proves: IM-08."""
    document = _document("v1")
    status = document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
    item = {"type": "object", "properties": {"address": TEXT, "type": TEXT}}
    status["properties"]["addresses"] = {"type": "array", "items": item}
    obj = _install(api, document, spec={})
    addresses = {"status": {"addresses": [{"address": "10.0.0.1"}]}}
    assert api.patch(obj, addresses, subresource="status")["status"] == addresses["status"]
    assert "IM-08" in _rules(tmp_path, document)
    removed(api, [document["metadata"]["name"]])


def test_a_version_that_is_not_served_any_longer(api: KubeClient, tmp_path: Path) -> None:
    """Proves: UP-02."""
    old = _document("v1alpha1", "v1")
    _install(api, old, 0, spec={})
    path = api.path(_object(old, 0)["apiVersion"], "AcmeMachine", "one", "default")
    new = copy.deepcopy(old)
    new["spec"]["versions"][0]["served"] = False
    upgraded(api, new)
    eventually(lambda: _refusal(lambda: api.request("GET", path)).startswith("404"))
    assert "UP-02" in _rules(tmp_path, new, old=old)
    removed(api, [old["metadata"]["name"]])


@pytest.mark.parametrize("is_kept", [True, False])
def test_the_subresource_scale(is_kept: bool, api: KubeClient, tmp_path: Path) -> None:
    """Proves: UP-21."""
    fields = {"replicas": {"type": "integer"}, "count": {"type": "integer"}}
    old = _document("v1", spec=fields)
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    old["spec"]["versions"][0]["subresources"]["scale"] = scale
    obj = _install(api, old, spec={"replicas": 3, "count": 5})
    path = api.path(obj["apiVersion"], "AcmeMachine", "one", "default", "scale")
    assert api.request("GET", path)["spec"]["replicas"] == 3
    new = copy.deepcopy(old)
    scales = new["spec"]["versions"][0]["subresources"]
    if is_kept:
        scales["scale"]["specReplicasPath"] = ".spec.count"
    else:
        scales["scale"] = None
    upgraded(api, new)
    if is_kept:
        eventually(lambda: api.request("GET", path)["spec"]["replicas"] == 5)
    else:
        eventually(lambda: _refusal(lambda: api.request("GET", path)).startswith("404"))
    assert "UP-21" in _rules(tmp_path, new, old=old)
    removed(api, [old["metadata"]["name"]])


def test_a_binding_of_a_missing_role(api: KubeClient, tmp_path: Path) -> None:
    """Proves: CC-46."""
    name = "acme-reader"
    user = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "acme"}
    reference = {"kind": "ClusterRole", "apiGroup": user["apiGroup"], "name": name}
    binding = {
        **{"apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": name}},
        **{"roleRef": reference, "subjects": [user]},
    }
    api.create(binding)
    assert not _may_read(api)
    assert "CC-46" in _rules(tmp_path, binding)
    rule = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
    role = {"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": name}, "rules": [rule]}
    api.create(role)
    eventually(lambda: _may_read(api))
    for each in (binding, role):
        api.delete(each)


def _may_read(api: KubeClient) -> bool:
    attributes = {"verb": "get", "resource": "secrets", "namespace": "default"}
    review = {"user": "acme", "resourceAttributes": attributes}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    kind = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
    answer = api.request("POST", path, body={**kind, "spec": review})
    return bool(answer["status"]["allowed"])


def test_a_priority_class_that_does_not_exist(api: KubeClient) -> None:
    """Proves: CC-39."""
    metadata = {"name": "effects", "namespace": "default"}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
    api.apply(account)
    refusals = [_refuse_pod(api, name) for name in ("", "system-cluster-critical")]
    assert refusals == ["", ""]
    refusal = _refuse_pod(api, "acme-critical")
    assert "no PriorityClass with name acme-critical was found" in refusal
    api.delete(account)


def _refuse_pod(api: KubeClient, priority: str) -> str:
    spec = {
        **{"containers": [{"name": "a", "image": "x"}], "serviceAccountName": "effects"},
        "priorityClassName": priority,
    }
    metadata = {"name": "effects", "namespace": "default"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    return _refusal(lambda: api.apply(pod, dry_run=True))


def test_policies_match_the_plural_and_served_versions(api: KubeClient, tmp_path: Path) -> None:
    """Proves: CC-47."""
    document = _document("v1alpha1", "v1")
    document["spec"]["versions"][0]["served"] = False
    obj = _install(api, document, spec={})
    # The last one shows that the API server reads the policies; the others are as old.
    wrong = [
        _policy(document, "acmemachine", "v1"),
        _policy(document, "acmemachines", "v1alpha1", "Exact"),
        _policy(document, "acmemachines", "v2"),
    ]
    converted = _policy(document, "acmemachines", "v1alpha1")
    for policy in (*wrong, converted):
        api.create(policy)
        metadata = {"name": policy["metadata"]["name"]}
        spec = {"policyName": metadata["name"], "validationActions": ["Deny"]}
        kind = "ValidatingAdmissionPolicyBinding"
        api.create({"apiVersion": ADMISSION, "kind": kind, "metadata": metadata, "spec": spec})
    refusal = eventually(lambda: _refusal(lambda: api.apply({**obj, "spec": {}}, dry_run=True)))
    names = [each["metadata"]["name"] for each in (*wrong, converted)]
    assert [name in refusal for name in names] == [False, False, False, True]
    assert "CC-47" not in _rules(tmp_path, document, converted)
    for number, policy in enumerate(wrong):
        (tmp_path / str(number)).mkdir()
        assert "CC-47" in _rules(tmp_path / str(number), document, policy)
    for name in names:
        for kind in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"):
            api.delete({"apiVersion": ADMISSION, "kind": kind, "metadata": {"name": name}})
    removed(api, [document["metadata"]["name"]])


def _policy(document: JSON, resource: str, version: str, match: str = "Equivalent") -> JSON:
    group = document["spec"]["group"]
    name = f"{match.lower()}.{resource}-{version}.{group}"
    rule = {"apiGroups": [group], "apiVersions": [version], "operations": ["*"]}
    return {
        "apiVersion": ADMISSION,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {
                "matchPolicy": match,
                "resourceRules": [{**rule, "resources": [resource]}],
            },
            "validations": [{"expression": "false"}],
        },
    }
