"""Only the API version is judged that core would choose, for the kinds that core uses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from capsmith.judge.release.targets import Core, choose, format_span, rank_kubernetes_version
from tests.verify.places import run
from tests.verify.releases import crd, ids, read_crd, violations, write

V1BETA1, V1BETA2 = "cluster.x-k8s.io/v1beta1", "cluster.x-k8s.io/v1beta2"


@pytest.mark.parametrize(
    ("labels", "core", "expected"),
    [
        ({V1BETA1: "v1alpha1", V1BETA2: "v1beta1_v1"}, Core(1, 11), ("v1beta2", "v1")),
        ({V1BETA1: "v1alpha1", V1BETA2: "v1beta1_v1"}, Core(1, 10), ("v1beta1", "v1alpha1")),
        ({V1BETA1: "v1alpha1_v1alpha2"}, Core(1, 13), ("v1beta1", "v1alpha2")),
        ({V1BETA2: "v1"}, Core(1, 10), ("v1beta1", "")),
        ({}, Core(1, 13), ("v1beta2", "")),
    ],
)
def test_choice(labels: dict[str, str], core: Core, expected: tuple[str, str]) -> None:
    assert choose(read_crd(crd("InfraMachine", labels=labels)), core) == expected


def test_order_of_versions() -> None:
    names = ["v1alpha1", "v2", "foo", "v1beta2", "v1", "v1beta10", "v2alpha1", "fo", "goo"]
    names += ["v12345678901", "v99999999999999999999"]
    assert sorted(names, key=rank_kubernetes_version) == [
        *("v99999999999999999999", "goo", "foo", "fo"),
        *("v1alpha1", "v2alpha1", "v1beta2", "v1beta10", "v1", "v2", "v12345678901"),
    ]


def test_spans() -> None:
    assert [format_span(()), format_span([Core(1, 9)]), format_span([Core(1, 15), Core(1, 9)])] == [
        *("", "v1.9", "v1.9 to v1.15"),
    ]


def test_versions_that_core_does_not_choose_are_not_judged(tmp_path: Path) -> None:
    machine = crd("CoralMachine", labels={V1BETA2: "v1alpha1_v1"}, versions=("v1alpha1", "v1"))
    old, new = machine["spec"]["versions"]
    old["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"] = {}
    assert "IM-03" not in ids(write(tmp_path, machine), tmp_path)
    new["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"] = {}
    assert "IM-03" in ids(write(tmp_path, machine), tmp_path)


def test_releases_that_clusterctl_refuses_are_not_judged(tmp_path: Path) -> None:
    """A series of contract v1beta2 is not installed by v1.10, so no v1beta1 label is missing."""
    path = write(tmp_path, crd("CoralMachine", labels={V1BETA2: "v1"}))
    assert "GEN-01" in ids(path, tmp_path)
    write(tmp_path, series((1, "v1beta2")), name="metadata.yaml")
    assert "GEN-01" not in ids(path, tmp_path)


def test_a_crd_without_labels_is_reported_once(tmp_path: Path) -> None:
    """Not for each contract version: most releases of core read any of the labels."""
    path = write(tmp_path, crd("CoralMachine"))
    (found,) = violations(str(path), "--select", "GEN-01")
    assert (
        found["message"] == f"CoralMachine: label {V1BETA2} or {V1BETA1} is missing; expected 'v1'"
    )
    assert [found["core"][0], found["core"][-1]] == ["v1.10", "v1.15"]


def series(*entries: tuple[int, str]) -> dict[str, Any]:
    """Return a metadata.yaml with a contract for each minor of v0."""
    return {
        "apiVersion": "clusterctl.cluster.x-k8s.io/v1alpha3",
        "kind": "Metadata",
        "releaseSeries": [{"major": 0, "minor": each, "contract": name} for each, name in entries],
    }


def test_a_release_without_series_has_the_contract_of_its_labels(tmp_path: Path) -> None:
    """CC-06 reports the missing series; older series may have another contract."""
    path = write(tmp_path, crd("CoralMachine", labels={V1BETA2: "v1"}))
    write(tmp_path, series((1, "v1beta1")), name="metadata.yaml")
    assert {"GEN-01", "GEN-09"} <= ids(path, tmp_path, "--version", "v0.1.3")
    found = ids(path, tmp_path, "--version", "v0.2.0")
    assert "CC-06" in found
    assert not {"GEN-01", "GEN-09"} & found


def test_an_older_series_has_the_contract_of_its_entry(tmp_path: Path) -> None:
    path = write(tmp_path, crd("CoralMachine", labels={V1BETA1: "v1"}))
    write(tmp_path, series((1, "v1beta1"), (2, "v1beta2")), name="metadata.yaml")
    assert "GEN-09" not in ids(path, tmp_path, "--version", "v0.1.4")
    assert "GEN-09" in ids(path, tmp_path, "--version", "v0.2.0")
    assert "GEN-09" in ids(path, tmp_path)


def test_metadata_below_that_of_the_release_is_not_judged(tmp_path: Path) -> None:
    """In a repository with several providers, each may have metadata that no release has."""
    (tmp_path / "manager.yaml").write_text(yaml.safe_dump(crd("CoralMachine", {V1BETA1: "v1"})))
    (tmp_path / "bootstrap").mkdir()
    old = {key: value for key, value in series((1, "v1beta1")).items() if key != "kind"}
    write(tmp_path / "bootstrap", old, name="metadata.yaml")
    arguments = (str(tmp_path), "--version", "v0.2.0", "--select", "CC-06,CC-11")
    assert [each["id"] for each in violations(*arguments)] == ["CC-11", "CC-06"]
    write(tmp_path, series((1, "v1beta1"), (2, "v1beta1")), name="metadata.yaml")
    assert violations(*arguments) == []


def test_a_helper_has_no_role(tmp_path: Path) -> None:
    helper = crd("PooledRemoteMachine", labels={V1BETA2: "v1"})
    schema = helper["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"] = {"type": "object", "properties": {"pool": {"type": "string"}}}
    schema["properties"]["status"] = {"type": "object"}
    path = write(tmp_path, helper)
    assert not {"IM-01", "IM-03", "IM-12"} & ids(path, tmp_path)
    assert {"IM-03", "IM-12"} <= ids(path, tmp_path, "--role", "PooledRemoteMachine=inframachine")


def test_machines_of_the_cloud_beside_inframachines_have_no_role(tmp_path: Path) -> None:
    """Core refers to the kind with a template; the other one has a status, but no provider ID."""
    server = crd("AcmeVirtualMachine", labels={V1BETA2: "v1"})
    properties = server["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    properties["spec"] = {"type": "object"}
    properties["status"]["properties"] = {"ready": {"type": "boolean"}}
    machine, template = crd("AcmeMachine", {V1BETA2: "v1"}), crd("AcmeMachineTemplate")
    rules = {"IM-01", "IM-03", "IM-12"}
    assert not rules & ids(write(tmp_path, server, machine, template), tmp_path)
    assert rules <= ids(write(tmp_path, server), tmp_path)
    properties["spec"]["properties"] = {"providerID": {"type": "string"}}
    assert "IM-03" in ids(write(tmp_path, server, machine, template), tmp_path)


def test_machines_of_a_pool_keep_their_role(tmp_path: Path) -> None:
    member = crd("AcmeMachinePoolMachine", labels={V1BETA2: "v1"})
    del member["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    others = (crd("AcmeMachinePool"), crd("AcmeMachine"), crd("AcmeMachineTemplate"))
    found = violations(str(write(tmp_path, member, *others)), "--select", "IM-01")
    assert "AcmeMachinePoolMachine" in " ".join(each["message"] for each in found)


def test_a_role_that_is_told(tmp_path: Path) -> None:
    path = write(tmp_path, crd("CoralMachine", labels={V1BETA2: "v1"}))
    assert "IM-12" in ids(path, tmp_path)
    assert "IM-12" not in ids(path, tmp_path, "--role", "CoralMachine=none")


def test_a_role_that_is_not_known(tmp_path: Path) -> None:
    result = run(str(tmp_path), "--role", "CoralMachine=Machine")
    assert result.exit_code == 2
    assert "'CoralMachine=Machine' is not a role" in result.output


@pytest.mark.parametrize(
    "target", ["v1.13", "core=v1.13..", "core=v2.0", "core=v1.9..v1.13", "core="]
)
def test_a_target_that_is_not_known(tmp_path: Path, target: str) -> None:
    (tmp_path / "a.yaml").write_text("kind: A\n")
    result = run(str(tmp_path), "--target", target)
    assert result.exit_code == 2
    assert "v1.10..v1.15 (v1.11, v1.12, v1.15 as read from source)" in " ".join(
        result.output.split()
    )


def test_target(tmp_path: Path) -> None:
    """The label of contract v1beta1 is for v1.10 only, where v1beta2 is there as well."""
    path = write(tmp_path, crd("CoralMachine", labels={V1BETA2: "v1"}))
    assert "GEN-01" in ids(path, tmp_path, "--target", "core=v1.10")
    assert "GEN-01" not in ids(path, tmp_path, "--target", "core=v1.11..v1.15")


@pytest.mark.parametrize(
    ("labels", "contract", "target", "when"),
    [
        ([V1BETA2], "v1beta1", "core=v1.10..v1.15", "clusterctl v1.10 installs the release"),
        ([V1BETA2], "v1beta1", "core=v1.11..v1.15", ""),
        ([V1BETA1, V1BETA2], "v1beta1", "core=v1.10..v1.15", ""),
        ([V1BETA1], "v1beta2", "core=v1.10..v1.15", ""),
    ],
)
def test_contract_of_metadata_matters_where_core_speaks_no_other_one(
    tmp_path: Path, labels: list[str], contract: str, target: str, when: str
) -> None:
    path = write(tmp_path, crd("CoralMachine", labels=dict.fromkeys(labels, "v1")))
    write(tmp_path, series((1, contract)), name="metadata.yaml")
    arguments = (str(path.parent), "--select", "GEN-09", "--advice", "--target", target)
    (violation,) = violations(*arguments)
    assert violation["when"] == when
    assert violation["class"] == ("breaks-when" if when else "advice")
    assert violation["path"] == "releaseSeries[0].contract"


def test_crds_of_other_providers_are_known(tmp_path: Path) -> None:
    """A template of one provider is judged by the CRDs of all that are given."""
    other, own = tmp_path / "other", tmp_path / "own"
    for folder in (other, own):
        folder.mkdir()
    fields = {"size": {"type": "integer"}}
    write(other, crd("ReefMachine", labels={V1BETA2: "v1"}, spec=fields))
    write(own, crd("CoralMachine", labels={V1BETA2: "v1"}))
    reef = {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1",
        "kind": "ReefMachine",
        "metadata": {"name": "${CLUSTER_NAME}"},
        "spec": {"size": "large", "providerID": "${ID}"},
    }
    write(own, reef, name="cluster-template.yaml")
    assert "CC-80" not in ids(own / "cluster-template.yaml", own)
    both = violations(str(own), str(other), "--select", "CC-80")
    assert [violation["path"] for violation in both] == ["spec.size"]


def test_what_a_webhook_may_fill_in_is_not_missing(tmp_path: Path) -> None:
    machine = crd("CoralMachine", labels={V1BETA2: "v1"}, spec={"size": {"type": "string"}})
    schema = machine["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["required"] = ["size"]
    rule = {
        "apiGroups": ["infrastructure.cluster.x-k8s.io"],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["coralmachines"],
    }
    webhook = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "coral"},
        "webhooks": [{"name": "default.coral.io", "rules": [rule]}],
    }
    coral = {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1",
        "kind": "CoralMachine",
        "metadata": {"name": "a"},
        "spec": {},
    }
    path = write(tmp_path, coral, name="cluster-template.yaml")
    write(tmp_path, machine)
    assert "CC-80" in ids(path, tmp_path)
    write(tmp_path, machine, webhook)
    assert "CC-80" not in ids(path, tmp_path)


def test_machines_of_a_pool_may_be_made_whole(tmp_path: Path) -> None:
    """Azure's pool writes spec.providerID of a machine when it makes the machine."""
    machine = crd("CoralMachinePoolMachine", labels={V1BETA2: "v1"})
    schema = machine["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["required"] = ["providerID"]
    pool = crd("CoralMachinePool", labels={V1BETA2: "v1"})
    for documents, expected in (((machine,), "breaks"), ((machine, pool), "advice")):
        write(tmp_path, *documents)
        classes = {v["class"] for v in violations(str(tmp_path), "--select", "IM-01")}
        assert classes == {expected}


def test_patches_in_a_source_tree_are_no_manifests(tmp_path: Path) -> None:
    (tmp_path / "patch.yaml").write_text("- {op: add, path: /spec, value: {}}\n")
    write(tmp_path, crd("CoralMachine", labels={V1BETA2: "v1"}), name="crd.yaml")
    assert violations(str(tmp_path), "--select", "manifest") == []
    assert violations(str(tmp_path / "patch.yaml"), "--select", "manifest") != []


def test_a_pool_is_known_by_the_kind_of_its_machines(tmp_path: Path) -> None:
    document = crd("AcmeMachinePool", {"cluster.x-k8s.io/v1beta2": "v1"})
    properties = document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    properties["spec"]["properties"] = {}
    properties["status"]["properties"] = {"infrastructureMachineKind": {"type": "string"}}
    assert "MP-11" in ids(write(tmp_path, document), tmp_path)
