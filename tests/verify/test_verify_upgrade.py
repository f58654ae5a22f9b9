"""What an installed release loses when clusterctl replaces it by another one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.verify.places import run
from tests.verify.releases import GROUP, crd, violations, write

V1, V2 = "cluster.x-k8s.io/v1beta1", "cluster.x-k8s.io/v1beta2"
NAME = f"acmemachines.{GROUP}"
HOOK = {"service": {"namespace": "acme-system", "name": "acme-webhook"}}
SPEC = {
    "size": {"type": "string", "enum": ["small", "large"], "default": "small"},
    "count": {"type": "integer", "minimum": 0},
    "disks": {"type": "array", "items": {"type": "object", "properties": {"name": {}}}},
}
Release = dict[str, dict[str, Any]]


def release() -> Release:
    """Return a release by names of objects, in each of which something can be changed."""
    machine = crd("AcmeMachine", {V2: "v1"}, ("v1alpha1", "v1"), SPEC)
    webhook = {"clientConfig": HOOK, "conversionReviewVersions": ["v1"]}
    machine["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    machine["spec"]["versions"][-1]["selectableFields"] = [{"jsonPath": ".spec.size"}]
    service = {"namespace": "acme-system", "name": "acme-webhook"}
    called = {"operations": ["CREATE"], "apiGroups": [GROUP], "apiVersions": ["v1"]}
    rules = [{**called, "resources": ["acmemachines/status", "others"]}]
    hook = {"name": "a.example.com", "failurePolicy": "Fail", "clientConfig": HOOK}
    hooks = [{**hook, "rules": rules}]
    series = {"major": 0, "minor": 1, "contract": "v1beta2"}
    return {
        "crd": machine,
        "namespace": _object("v1", "Namespace", name="acme-system"),
        "service": _object("v1", "Service", **service),
        "role": _object("rbac.authorization.k8s.io/v1", "ClusterRole", name="acme-system-role"),
        "hook": {
            **_object(
                "admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", name="a"
            ),
            "webhooks": hooks,
        },
        "metadata": {
            "apiVersion": "clusterctl.cluster.x-k8s.io/v1alpha3",
            "kind": "Metadata",
            "releaseSeries": [series],
        },
    }


def _object(version: str, kind: str, **metadata: str) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


def found(folder: Path, old: Release, new: Release) -> list[dict[str, Any]]:
    """Return what is reported on the upgrade."""
    for name, content in (("old", old), ("new", new)):
        (folder / name).mkdir()
        write(folder / name, *(content[key] for key in content if key != "metadata"))
        (folder / name / "metadata.yaml").write_text(yaml.safe_dump(content["metadata"]))
    return violations(str(folder / "new"), "--upgrade", str(folder / "old"))


def _spec(content: Release) -> Any:
    newest = content["crd"]["spec"]["versions"][-1]
    return newest["schema"]["openAPIV3Schema"]["properties"]["spec"]


def _fields(content: Release) -> Any:
    return _spec(content)["properties"]


def _versions(content: Release) -> Any:
    return content["crd"]["spec"]["versions"]


def _moved(content: Release) -> None:
    content["crd"]["spec"]["names"]["plural"] = "others"
    content["crd"]["metadata"]["name"] = f"others.{GROUP}"


def _renamed(content: Release) -> None:
    _moved(content)
    content["crd"]["spec"]["names"].update(kind="Other", listKind="OtherList", singular="other")


def _convert_by(content: Release, client: dict[str, Any]) -> None:
    content["crd"]["spec"]["conversion"]["webhook"]["clientConfig"] = client


def _more_versions(content: Release) -> None:
    """Add a version without a field of the stored one."""
    added = copy.deepcopy(_versions(content)[-1])
    added.update(name="v2", storage=False)
    added["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"].pop("count")
    _versions(content).append(added)


def _convert_nothing(content: Release) -> Release:
    content["crd"]["spec"]["conversion"] = {"strategy": "None"}
    return content


def _relabelled(content: Release) -> None:
    content["crd"]["metadata"]["labels"] = {V1: "v1"}
    content["metadata"]["releaseSeries"][0]["contract"] = "v1beta2"
    _versions(content)[-1].update(name="v2")


CHANGES: dict[str, tuple[str, Callable[[Release], object]]] = {
    "stored-version-gone": ("UP-01", lambda r: _versions(r).pop()),
    "version-gone": ("UP-02", lambda r: _versions(r).pop(0)),
    "version-removed": ("UP-22", lambda r: _versions(r).pop(0)),
    "field-not-selectable": ("UP-23", lambda r: _versions(r)[-1].pop("selectableFields")),
    "version-unserved": ("UP-02", lambda r: _versions(r)[0].update(served=False)),
    "scope": ("UP-03", lambda r: r["crd"]["spec"].update(scope="Cluster")),
    "kind": ("UP-03", lambda r: r["crd"]["spec"]["names"].update(kind="OtherMachine")),
    "crd-gone": ("UP-04", lambda r: r.pop("crd")),
    "crd-called-otherwise": ("UP-04", _renamed),
    "names-of-a-crd-that-stays": ("UP-24", _moved),
    "required": ("UP-05", lambda r: _spec(r).update(required=["count"])),
    "enum-value-gone": ("UP-06", lambda r: _fields(r)["size"]["enum"].pop()),
    "enum-added": ("UP-06", lambda r: _fields(r)["count"].update(enum=[1])),
    "minimum": ("UP-06", lambda r: _fields(r)["count"].update(minimum=1)),
    "maximum": ("UP-06", lambda r: _fields(r)["count"].update(maximum=9)),
    "pattern": ("UP-06", lambda r: _fields(r)["size"].update(pattern="^s")),
    "cel": (
        "UP-06",
        lambda r: _fields(r)["size"].update({"x-kubernetes-validations": [{"rule": "false"}]}),
    ),
    "type": ("UP-07", lambda r: _fields(r)["count"].update(type="string")),
    "status-gone": ("UP-19", lambda r: _versions(r)[-1].pop("subresources")),
    "field-gone": ("UP-08", lambda r: _fields(r).pop("count")),
    "field-of-items-gone": (
        "UP-08",
        lambda r: _fields(r)["disks"]["items"]["properties"].pop("name"),
    ),
    "default": ("UP-09", lambda r: _fields(r)["size"].update(default="large")),
    "label-stays": ("UP-10", _relabelled),
    "contract-of-series": (
        "UP-11",
        lambda r: r["metadata"]["releaseSeries"][0].update(contract="v1beta1"),
    ),
    "series-gone": ("UP-12", lambda r: r["metadata"]["releaseSeries"][0].update(minor=2)),
    "strategy-none": ("UP-13", lambda r: r["crd"]["spec"].update(conversion={"strategy": "None"})),
    "service-becomes-url": ("UP-13", lambda r: _convert_by(r, {"url": "https://a.example.com"})),
    "conversion-gone": (
        "UP-14",
        lambda r: (r["crd"]["spec"].pop("conversion"), r.pop("service"), r.pop("hook")),
    ),
    "service-gone": ("UP-16", lambda r: r.pop("service")),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_loss_is_found(case: str, tmp_path: Path) -> None:
    """Each rule is that of a case.

    Proves: UP-01, UP-02, UP-03, UP-04, UP-05, UP-06, UP-07, UP-08.
    Proves: UP-09, UP-10, UP-11, UP-12, UP-13, UP-14, UP-16, UP-19.
    Proves: UP-22, UP-23, UP-24.
    """
    rule, change = CHANGES[case]
    new = copy.deepcopy(release())
    change(new)
    assert rule in {each["id"] for each in found(tmp_path, release(), new)}


def test_nothing_changes(tmp_path: Path) -> None:
    assert found(tmp_path, release(), release()) == []


def _call(content: Release, rules: list[dict[str, Any]]) -> None:
    """Let the hook, whose Service is gone, have other rules, and convert nothing."""
    (hook,) = content["hook"]["webhooks"]
    hook["rules"] = [hook["rules"][0] | each for each in rules]
    content["service"]["metadata"].update(name="acme-other")
    client = {"service": {"namespace": "acme-system", "name": "acme-other"}}
    _convert_by(content, client)


@pytest.mark.parametrize(
    "rule",
    [
        {"apiGroups": ["*"], "resources": ["*"]},
        {"resources": ["*/*"]},
        {"apiGroups": ["apps", GROUP], "resources": ["deployments"]},
    ],
)
def test_a_webhook_may_be_called_for_other_resources(tmp_path: Path, rule: dict[str, Any]) -> None:
    """Proves: UP-16."""
    new = release()
    _call(new, [rule])
    assert {each["id"] for each in found(tmp_path, release(), new)} == {"UP-16"}


def _patterns(old: str, new: str) -> tuple[Release, Release]:
    releases = release(), release()
    for content, pattern in zip(releases, (old, new), strict=True):
        _fields(content)["size"] = {"type": "string", "pattern": pattern}
    return releases


@pytest.mark.parametrize(
    ("old", "new", "is_found"),
    [
        ("^[a-z]+$", "^[a-z0-9]+$", False),
        ("^[a-z0-9]+$", "^[a-z]+$", True),
        ("(?i)^a$", "^[aA]$", True),  # not compared
    ],
)
def test_a_pattern_that_accepts_more_refuses_nothing(
    tmp_path: Path, old: str, new: str, is_found: bool
) -> None:
    """Proves: UP-06."""
    assert bool(found(tmp_path, *_patterns(old, new))) == is_found


COMPATIBLE: dict[str, Callable[[Release], object]] = {
    "a-field-more": lambda r: _fields(r).update(more={"type": "string"}),
    "required-with-default": lambda r: _spec(r).update(required=["size"]),
    "enum-value-more": lambda r: _fields(r)["size"]["enum"].append("huge"),
    "lower-minimum": lambda r: _fields(r)["count"].update(minimum=-1),
    "no-minimum": lambda r: _fields(r)["count"].pop("minimum"),
    "immutable-now": lambda r: _fields(r)["size"].update(
        {"x-kubernetes-validations": [{"rule": "self == oldSelf"}]}
    ),
    "label-gone-but-kept": lambda r: r["crd"]["metadata"].update(labels={}),
    "a-series-more": lambda r: r["metadata"]["releaseSeries"].append(
        {"major": 0, "minor": 2, "contract": "v1beta2"}
    ),
    "conversion-kept": lambda r: r["crd"]["spec"].pop("conversion"),
    "hook-ignored": lambda r: (
        r["hook"]["webhooks"][0].update(failurePolicy="Ignore"),
        r["service"]["metadata"].update(name="acme-other"),
        r["crd"]["spec"]["conversion"]["webhook"].update(
            clientConfig={"service": {"namespace": "acme-system", "name": "acme-other"}}
        ),
    ),
    "hook-without-rules": lambda r: _call(r, []),
    "hook-without-resource": lambda r: _call(r, [{"resources": ["others"]}]),
    "another-namespace": lambda r: (
        r["namespace"]["metadata"].update(name="other-system"),
        r["service"]["metadata"].update(namespace="other-system"),
        r["crd"]["spec"].pop("conversion"),
    ),
    "role-renamed": lambda r: r["role"]["metadata"].update(name="acme-system-other"),
}


@pytest.mark.parametrize("case", COMPATIBLE)
def test_what_is_compatible_is_not_found(case: str, tmp_path: Path) -> None:
    new = copy.deepcopy(release())
    COMPATIBLE[case](new)
    assert found(tmp_path, release(), new) == []


def test_a_webhook_that_converts_is_added(tmp_path: Path) -> None:
    """Proves: UP-14."""
    old, new = _convert_nothing(release()), release()
    del new["service"], new["hook"]
    assert {each["id"] for each in found(tmp_path, old, new)} == {"UP-14"}


def test_a_url_becomes_a_service(tmp_path: Path) -> None:
    """Proves: UP-13."""
    old = release()
    _convert_by(old, {"url": "https://a.example.com"})
    assert {each["id"] for each in found(tmp_path, old, release())} == {"UP-13"}


@pytest.mark.parametrize(("is_served", "expected"), [(True, {"UP-25"}), (False, set())])
def test_a_version_without_a_stored_field_is_served(
    is_served: bool, expected: set[str], tmp_path: Path
) -> None:
    """Proves: UP-25."""
    old, new = _convert_nothing(release()), _convert_nothing(release())
    _more_versions(new)
    _versions(new)[-1]["served"] = is_served
    assert {each["id"] for each in found(tmp_path, old, new)} == expected


def test_a_converted_version_may_lack_a_stored_field(tmp_path: Path) -> None:
    new = release()
    _more_versions(new)
    assert found(tmp_path, release(), new) == []


def test_a_rule_of_the_whole_object_has_a_subject(tmp_path: Path) -> None:
    new = release()
    schema = _versions(new)[-1]["schema"]["openAPIV3Schema"]
    schema["x-kubernetes-validations"] = [{"rule": "self.spec.size != 'a'"}]
    (violation,) = found(tmp_path, release(), new)
    assert violation["message"].startswith("AcmeMachine v1: the object has a new rule")


def test_what_is_left_behind(tmp_path: Path) -> None:
    """Proves: UP-15."""
    old = copy.deepcopy(release())
    old["role"]["metadata"]["name"] = "acme-role"
    (violation,) = found(tmp_path, old, release())
    assert (violation["id"], violation["class"]) == ("UP-15", "breaks-when")
    assert violation["file"].endswith("old/infrastructure-components.yaml")


def test_admission_policies_are_not_left_behind(tmp_path: Path) -> None:
    """Proves: UP-15.

    clusterctl takes them for namespaced objects, and deletes them whatever their names.
    """
    old = copy.deepcopy(release())
    version, name = "admissionregistration.k8s.io/v1", {"name": "policy"}
    kinds = ("ValidatingAdmissionPolicy", "MutatingAdmissionPolicyBinding")
    for kind in kinds:
        old[kind] = {"apiVersion": version, "kind": kind, "metadata": name}
    assert found(tmp_path, old, release()) == []


def test_the_place_is_the_field(tmp_path: Path) -> None:
    new = copy.deepcopy(release())
    _fields(new)["count"]["minimum"] = 3
    (violation,) = found(tmp_path, release(), new)
    text = (tmp_path / "new" / "infrastructure-components.yaml").read_text().splitlines()
    assert "count" in text[violation["line"] - 1]
    assert violation["path"].endswith("spec.properties.count")


def test_a_reason_accepts_a_loss(tmp_path: Path) -> None:
    new = copy.deepcopy(release())
    _fields(new).pop("count")
    assert found(tmp_path, release(), new)
    arguments = (str(tmp_path / "new"), "--upgrade", str(tmp_path / "old"), "--ignore", "UP-08")
    result = run(*arguments)
    assert (result.exit_code, "0 break," in result.output) == (0, True)


def test_a_label_that_named_no_served_version_before_is_no_loss(tmp_path: Path) -> None:
    """One list of versions is often on all CRDs, those with fewer versions included."""
    old = copy.deepcopy(release())
    old["crd"]["metadata"]["labels"] = {V1: "v1_v2"}
    new = copy.deepcopy(old)
    new["crd"]["metadata"]["labels"] = {V1: "v2"}
    assert "UP-10" not in {violation["id"] for violation in found(tmp_path, old, new)}
