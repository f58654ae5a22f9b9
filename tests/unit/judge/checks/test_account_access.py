"""Access for the manager of another provider, beside the cases in tests/rules/RB-11."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from capsmith.judge.checks.evaluate import evaluate_manifests
from capsmith.manifests.parse import parse_manifests
from tests.rules.cases import ROOT, contract

_GOOD = ROOT / "RB-11" / "good" / "components.yaml"
_USER = "system:serviceaccount:capi-kubeadm-bootstrap-system:capi-kubeadm-bootstrap-manager"


def _objects() -> dict[str, Any]:
    """The objects of the good case by kind."""
    return {each["kind"]: each for each in yaml.safe_load_all(_GOOD.read_text(encoding="utf-8"))}


def _is_kept(objects: dict[str, Any], *more: dict[str, Any]) -> bool:
    text = yaml.safe_dump_all([*objects.values(), *more])
    manifests, wrong = parse_manifests(text, "control-plane-components.yaml")
    assert not wrong
    found = evaluate_manifests(manifests, contract("v1beta2"))
    return not [each for each in found if each.id == "RB-11"]


def test_the_good_case_is_one() -> None:
    objects = _objects()
    assert _is_kept(objects)
    del objects["ClusterRoleBinding"]
    assert not _is_kept(objects)


@pytest.mark.parametrize(
    ("field", "values", "kept"),
    [
        ("verbs", ["*"], True),
        ("verbs", ["list", "watch"], False),
        ("apiGroups", ["*"], True),
        ("apiGroups", ["example.com"], False),
        ("resources", ["acmemachines", "acmecontrolplanes"], True),
        ("resources", ["*/status"], False),
        ("resourceNames", ["demo"], False),
    ],
)
def test_rules_of_the_role(field: str, values: list[str], kept: bool) -> None:
    objects = _objects()
    objects["ClusterRole"]["rules"][0][field] = values
    assert _is_kept(objects) is kept


def test_a_role_that_collects_others() -> None:
    objects = _objects()
    labels = {"example.com/collect": "true"}
    collected = {**objects["ClusterRole"], "metadata": {"name": "collected", "labels": labels}}
    objects["ClusterRole"].update(
        rules=[], aggregationRule={"clusterRoleSelectors": [{"matchLabels": labels}]}
    )
    assert not _is_kept(objects)
    assert _is_kept(objects, collected)


@pytest.mark.parametrize(("role", "kept"), [("cluster-admin", True), ("view", False)])
def test_roles_of_kubernetes(role: str, kept: bool) -> None:
    objects = _objects()
    objects["ClusterRoleBinding"]["roleRef"]["name"] = role
    assert _is_kept(objects) is kept


def test_a_binding_in_one_namespace_is_not_enough() -> None:
    objects = _objects()
    objects["ClusterRoleBinding"].update(
        kind="RoleBinding", metadata={"name": "binding", "namespace": "acme-system"}
    )
    assert not _is_kept(objects)


def test_a_default_namespace_that_kubeadm_s_provider_does_not_have() -> None:
    objects = _objects()
    (subject,) = objects["ClusterRoleBinding"]["subjects"]
    assert "${" in subject["name"]
    subject["name"] = _USER.replace("capi-kubeadm-bootstrap-system", "${KUBEADM_NAMESPACE}")
    assert _is_kept(objects)
    subject["name"] = _USER.replace("capi-kubeadm-bootstrap-system", "${KUBEADM_NAMESPACE:=other}")
    assert not _is_kept(objects)


def test_without_a_namespace_the_user_names_one() -> None:
    objects = _objects()
    namespace, _, name = _USER.removeprefix("system:serviceaccount:").partition(":")
    account = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    objects["ClusterRoleBinding"]["subjects"] = [account]
    assert not _is_kept(objects)
    del objects["Namespace"]
    assert _is_kept(objects)


def test_crds_alone_are_no_provider() -> None:
    objects = _objects()
    del objects["ClusterRoleBinding"], objects["Deployment"]
    assert _is_kept(objects)
