"""``--target core=v1.16``: the steps that are left until support for contract v1beta1 ends."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tests.verify.places import run
from tests.verify.releases import crd, write

OLD, NEW = "cluster.x-k8s.io/v1beta1", "cluster.x-k8s.io/v1beta2"
TARGET = ("--target", "core=v1.16")
FLAG = {"type": "boolean"}
METADATA = {
    "apiVersion": "clusterctl.cluster.x-k8s.io/v1alpha3",
    "kind": "Metadata",
    "releaseSeries": [{"major": 0, "minor": 1, "contract": "v1beta1"}],
}


def former_machine() -> dict[str, Any]:
    """Return a machine kind as it is under contract v1beta1 only."""
    document = crd("AcmeMachine", {OLD: "v1"}, ("v1",), {"failureDomain": {"type": "string"}})
    document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"] = {
        "type": "object",
        "properties": {
            "ready": FLAG,
            "failureReason": {"type": "string"},
            "conditions": conditions("severity"),
        },
    }
    return document


def conditions(*more: str) -> dict[str, Any]:
    """Return the schema of a list of conditions, with further fields."""
    names = ("type", "status", "reason", "message", "lastTransitionTime", *more)
    items = {"type": "object", "properties": {name: {"type": "string"} for name in names}}
    return {"type": "array", "items": items}


def steps(folder: Path, *options: str) -> dict[str, str]:
    """Return the state of each step, by the kind and what is to be done."""
    result = run(str(folder), *TARGET, "--format", "json", *options)
    assert result.exit_code in (0, 1), result.output
    migration = json.loads(result.output)["migration"]
    assert (migration["from"], migration["to"]) == ("v1beta1", "v1beta2")
    assert (migration["endsWith"], migration["announcedFor"]) == ("v1.16", "2027-04")
    return {f"{each['kind']}: {each['action']}": each["state"] for each in migration["steps"]}


def test_what_is_left_of_a_kind_of_the_old_contract(tmp_path: Path) -> None:
    write(tmp_path, former_machine())
    write(tmp_path, METADATA, name="metadata.yaml")

    machine, version = "AcmeMachine (InfraMachine)", "in API version v1"
    assert steps(tmp_path) == {
        f"{machine}: name an API version in the label {NEW} of the CRD": "left",
        f"{machine}: replace status.ready by status.initialization.provisioned {version}": "left",
        f"{machine}: apply the new limits of spec.providerID {version}": "left",
        f"{machine}: replace spec.failureDomain by status.failureDomain {version}": "left",
        f"{machine}: remove status.failureReason {version}": "optional",
        f"{machine}: change the structure of status.conditions {version}": "left",
        f"{machine}: set the condition Ready": "unseen",
        f"{machine}: set the condition Paused": "unseen",
        "metadata.yaml: add a release series with the contract v1beta2": "left",
    }


def test_a_metadata_file_of_two_providers_is_one_step(tmp_path: Path) -> None:
    for name in ("bootstrap", "control-plane"):
        write(tmp_path, former_machine(), name=f"{name}-components.yaml")
    write(tmp_path, METADATA, name="metadata.yaml")
    result = run(str(tmp_path), *TARGET, "--format", "json")
    kinds = [each["kind"] for each in json.loads(result.output)["migration"]["steps"]]
    assert kinds.count("metadata.yaml") == 1


def test_steps_are_done_in_the_version_that_the_label_names(tmp_path: Path) -> None:
    document = former_machine()
    document["metadata"]["labels"][NEW] = "v2"
    following = deepcopy(document["spec"]["versions"][0])
    following |= {"name": "v2", "storage": False}
    schema = following["schema"]["openAPIV3Schema"]["properties"]
    schema["spec"]["properties"] = {
        "providerID": {"type": "string", "minLength": 1, "maxLength": 512}
    }
    schema["status"]["properties"] = {
        "initialization": {"type": "object", "properties": {"provisioned": FLAG}},
        "failureDomain": {"type": "string", "minLength": 1, "maxLength": 256},
        "conditions": conditions(),
    }
    document["spec"]["versions"].append(following)
    write(tmp_path, document)

    found = steps(tmp_path)

    left = {text: state for text, state in found.items() if state != "done"}
    assert left == {
        "AcmeMachine (InfraMachine): set the condition Ready": "unseen",
        "AcmeMachine (InfraMachine): set the condition Paused": "unseen",
    }
    assert run(str(tmp_path), *TARGET).exit_code == 0


def test_a_field_of_the_spec_has_to_leave_its_old_path(tmp_path: Path) -> None:
    """Core still reads spec.failureDomain, whatever the contract.

    Proves: IM-07.
    """
    document = crd("AcmeMachine", {NEW: "v1"}, ("v1",), {"failureDomain": {"type": "string"}})
    status = document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
    status["properties"]["failureDomain"] = {"type": "string"}
    write(tmp_path, document)

    action = "replace spec.failureDomain by status.failureDomain in API version v1"
    assert steps(tmp_path)[f"AcmeMachine (InfraMachine): {action}"] == "left"


def test_a_version_without_the_label_is_looked_at(tmp_path: Path) -> None:
    """Its fields are there, but its limits are judged once the label names it."""
    document = former_machine()
    following = deepcopy(crd("AcmeMachine")["spec"]["versions"][0])
    document["spec"]["versions"].append({**following, "name": "v2", "storage": False})
    write(tmp_path, document)

    found = steps(tmp_path)

    machine, version = "AcmeMachine (InfraMachine)", "in API version v2"
    assert found[f"{machine}: name an API version in the label {NEW} of the CRD"] == "left"
    moved = "replace status.ready by status.initialization.provisioned"
    assert found[f"{machine}: {moved} {version}"] == "done"
    assert found[f"{machine}: apply the new limits of spec.providerID {version}"] == "left"


@pytest.mark.parametrize(
    ("labels", "contracts", "is_native"),
    [
        ({NEW: "v1"}, ["v1beta2"], True),
        ({NEW: "v1"}, [], True),
        ({NEW: "v1"}, ["v1beta1", "v1beta2"], False),
        ({NEW: "v1", OLD: "v1"}, ["v1beta2"], False),
        ({}, ["v1beta2"], False),
    ],
)
def test_code_that_was_written_for_the_new_contract_needs_no_steps(
    tmp_path: Path, labels: dict[str, str], contracts: list[str], is_native: bool
) -> None:
    pool = crd("AcmeIPPool", labels, spec={"addresses": {"type": "string"}})
    write(tmp_path, pool, crd("AcmeMachine", labels))
    series = [{"major": 0, "minor": n, "contract": each} for n, each in enumerate(contracts)]
    if series:
        write(tmp_path, {**METADATA, "releaseSeries": series}, name="metadata.yaml")
    found = steps(tmp_path)
    unseen = [text for text, state in found.items() if state == "unseen"]
    assert bool(unseen) != is_native
    assert any("spec.poolRef" in text for text in unseen) != is_native


def test_kinds_that_core_does_not_read_are_optional(tmp_path: Path) -> None:
    write(tmp_path, crd("AcmeRemediation", {OLD: "v1"}), crd("AcmeMachine", {NEW: "v1"}))

    label = f"name an API version in the label {NEW} of the CRD"
    assert steps(tmp_path)[f"AcmeRemediation (Remediation): {label}"] == "optional"


def test_steps_have_a_place_and_a_reason_in_text(tmp_path: Path) -> None:
    path = write(tmp_path, former_machine())

    result = run(str(tmp_path), *TARGET)

    assert result.exit_code == 1
    lines = result.output.splitlines()
    (ready,) = (number for number, line in enumerate(lines) if "replace status.ready" in line)
    assert lines[ready].startswith(f"{path}:")
    assert lines[ready + 1].startswith(
        "    at: spec.versions[0].schema.openAPIV3Schema.properties."
    )
    assert lines[ready + 2].startswith(
        "    what happens: Core v1.16, announced for April 2027, ends"
    )
    assert "AcmeMachine (InfraMachine): 0 of 8 steps done" in lines
    assert "    not visible in manifests: set the condition Ready" in lines
    assert lines[-1] == (
        "capsmith verify: from contract v1beta1 to v1beta2: 5 of 8 steps left, 1 optional,"
        " 2 not visible in manifests; 1 file; support ends with core v1.16, announced for April"
        " 2027."
    )


def test_a_step_can_be_accepted(tmp_path: Path) -> None:
    write(tmp_path, former_machine())
    baseline = tmp_path / "baseline.json"
    assert run(str(tmp_path), *TARGET, "--write-baseline", str(baseline)).exit_code == 0

    assert run(str(tmp_path), *TARGET, "--baseline", str(baseline)).exit_code == 0


def test_every_format_has_the_steps(tmp_path: Path) -> None:
    write(tmp_path, former_machine())

    for format in ("sarif", "junit", "html", "markdown"):
        result = run(str(tmp_path), *TARGET, "--format", format)
        assert result.exit_code == 1, result.output
        assert "replace status.ready by status.initialization.provisioned" in " ".join(
            result.output.replace("`", "").split()
        ), format


def test_it_judges_one_release_and_asks_nobody(tmp_path: Path) -> None:
    write(tmp_path, former_machine())

    for options in (("--live",), ("--upgrade", str(tmp_path))):
        result = run(str(tmp_path), *TARGET, *options)
        assert result.exit_code == 2
        assert "core=v1.16 excludes --live and --upgrade" in result.output
