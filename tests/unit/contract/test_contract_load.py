from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from capsmith import resources
from capsmith.contract.load import get_sort_key, list_versions, load_contract, load_rules
from capsmith.contract.model import Level, Origin, Releases, SupportEnd, Weight
from capsmith.errors import UnreadableInput

CLONED = ("InfraCluster", "InfraMachine", "InfraMachinePool", "BootstrapConfig", "ControlPlane")
OWN_WITH_TEMPLATE = {"Remediation", "RemediationTemplate"}
CLUSTER_SCOPED = {"Identity", "GlobalIPPool"}
WITHOUT_TEMPLATE = {*CLUSTER_SCOPED, "IPPool", "Addon", "Resource"}
ROLES = {
    *CLONED,
    *(f"{role}Template" for role in CLONED),
    *OWN_WITH_TEMPLATE,
    *WITHOUT_TEMPLATE,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a copy of the contract data that a test may break."""
    source = Path(str(resources.schemas()))
    for name in ("contracts", "kinds"):
        shutil.copytree(source / name, tmp_path / name)
    shutil.copy(source / "compatibility.yaml", tmp_path)
    return tmp_path


def edit(file: Path, change: Callable[[dict[str, Any]], object]) -> None:
    data = yaml.safe_load(file.read_text())
    change(data)
    file.write_text(yaml.safe_dump(data))


def load_all(folder: Path) -> None:
    for version in list_versions():
        list(load_contract(version, folder).types.values())
    load_rules(folder)


def test_the_versions_are_the_folders() -> None:
    folders = {entry.name for entry in (resources.schemas() / "contracts").iterdir()}
    assert folders == {"common", *list_versions()}


def test_a_contract_has_no_own_kinds_of_capsmith() -> None:
    for version in list_versions():
        folder = resources.schemas() / "contracts" / version / "types"
        assert {file.name.removesuffix(".yaml") for file in folder.iterdir()} == {
            *CLONED,
            *(f"{role}Template" for role in CLONED),
        }


def test_an_unknown_version() -> None:
    with pytest.raises(ValueError, match="v1alpha4"):
        load_contract("v1alpha4", resources.schemas())


@pytest.mark.parametrize("version", list_versions())
def test_every_role_has_a_shape(version: str) -> None:
    contract = load_contract(version, resources.schemas())
    assert contract.version == version
    assert contract.label == f"cluster.x-k8s.io/{version}"
    assert set(contract.types) == ROLES
    for role, shape in contract.types.items():
        assert shape.role == role
        assert shape.scope == ("Cluster" if role in CLUSTER_SCOPED else "Namespaced")
        assert shape.printer_columns


@pytest.mark.parametrize("version", list_versions())
def test_every_field_names_a_rule_of_its_contract(version: str) -> None:
    contract = load_contract(version, resources.schemas())
    for shape in contract.types.values():
        for field in (*shape.spec.values(), *shape.status.values()):
            assert field.rule in contract.rules
            assert field.schema["description"].endswith(".")


def test_what_the_contracts_call_differently() -> None:
    old, new = (load_contract(version, resources.schemas()) for version in list_versions())
    # A kind may keep the field that core no longer reads.
    assert [c.types["InfraCluster"].status["ready"].feature for c in (old, new)] == ["", "ready"]
    assert "provisioned" in new.types["InfraMachine"].status["initialization"].schema["properties"]
    assert old.types["InfraCluster"].status["failureDomains"].schema["type"] == "object"
    assert new.types["InfraCluster"].status["failureDomains"].schema["type"] == "array"
    assert "failureReason" in old.types["InfraMachine"].status
    assert "failureReason" not in new.types["InfraMachine"].status
    templates = {role for role in ROLES if role.endswith("Template")}
    for role in sorted(ROLES - templates):
        shapes = [c.types[role].status["conditions"].schema["items"] for c in (old, new)]
        assert ["severity" in shape["properties"] for shape in shapes] == [True, False]


def test_pools_report_in_the_old_place_under_every_contract() -> None:
    old, new = (load_contract(v, resources.schemas()).types for v in list_versions())
    assert {"ready", "replicas"} <= set(old["InfraMachinePool"].status)
    assert {"ready", "replicas", "initialization"} <= set(new["InfraMachinePool"].status)
    for types in (old, new):
        assert "providerIDList" in types["InfraMachinePool"].spec
        assert not {"failureReason", "failureMessage"} & set(types["InfraMachinePool"].status)


def test_machine_templates_of_control_planes_differ() -> None:
    old, new = (
        load_contract(v, resources.schemas()).types["ControlPlane"].spec["machineTemplate"].schema
        for v in list_versions()
    )
    assert "infrastructureRef" in old["properties"]
    assert set(new["properties"]) == {"metadata", "spec"}
    inner = new["properties"]["spec"]["properties"]
    assert set(inner) == {"infrastructureRef", "deletion", "readinessGates", "taints"}
    assert set(inner["infrastructureRef"]["properties"]) == {"apiGroup", "kind", "name"}


def test_rules_are_read_on_first_use(folder: Path) -> None:
    contract = load_contract("v1beta2", folder)
    shutil.rmtree(folder / "contracts/common/rules")
    with pytest.raises(FileNotFoundError):
        len(contract.rules)


def test_shapes_are_read_on_first_use(folder: Path) -> None:
    contract = load_contract("v1beta2", folder)
    assert contract.types["InfraMachine"] is contract.types["InfraMachine"]
    (folder / "contracts/v1beta2/types/ControlPlane.yaml").unlink()
    assert "ControlPlane" in contract.types
    assert "Nothing" not in contract.types
    with pytest.raises(UnreadableInput, match="cannot be read"):
        contract.types["ControlPlane"]


def test_contracts_of_one_version_are_equal() -> None:
    first, second = (load_contract("v1beta2", resources.schemas()) for _ in range(2))
    assert first == second
    assert hash(first) == hash(second)


def test_rules_have_all_fields() -> None:
    rules = load_rules(resources.schemas())
    assert list(rules) == sorted(rules, key=get_sort_key)
    for rule in rules.values():
        assert rule.source.startswith("https://"), rule.id
        for text in (rule.title, rule.statement, rule.consequence, rule.hint):
            assert text.strip() == text, rule.id
            assert text, rule.id
        assert rule.hint.endswith("."), rule.id
        assert rule.statement.endswith((".", "…")), rule.id
        assert rule.applies_to, rule.id


def test_a_rule_holds_in_the_contracts_that_it_names() -> None:
    old, new = (load_contract(version, resources.schemas()).rules for version in list_versions())
    assert "IC-06" in old
    assert "IC-06" not in new
    assert "IC-05" in new
    assert "IC-05" not in old
    assert "CRD-01" in old
    assert "CRD-01" in new
    assert set(old) | set(new) == set(load_rules(resources.schemas()))


def test_weights_follow_levels_unless_a_rule_says_otherwise() -> None:
    rules = load_rules(resources.schemas())
    assert (rules["IC-05"].level, rules["IC-05"].weight) == (Level.MUST, Weight.ERROR)
    assert (rules["CC-20"].level, rules["CC-20"].weight) == (Level.SHOULD, Weight.WARNING)
    assert (rules["CC-31"].level, rules["CC-31"].weight) == (Level.SHOULD, Weight.INFO)
    assert (rules["CRD-10"].level, rules["CRD-10"].weight) == (Level.MAY, Weight.INFO)
    assert (rules["RB-05"].level, rules["RB-05"].weight) == (Level.MUST, Weight.WARNING)


def test_rules_tell_who_says_so_and_for_which_releases_of_core() -> None:
    rules = load_rules(resources.schemas())
    assert {rule.origin for rule in rules.values()} == set(Origin)
    assert rules["CP-09"].core == Releases(since="v1.14")
    assert rules["CP-39"].core == Releases(deprecated="v1.14", until="v1.13")
    assert rules["IC-05"].core == Releases()


def test_the_support_of_a_contract_is_data() -> None:
    old, new = (load_contract(version, resources.schemas()) for version in list_versions())
    assert old.releases == Releases(since="v1.0", until="v1.10")
    assert old.end == SupportEnd("v1.16", "2027-04")
    assert old.core == "v1.0 to v1.10; v1.11 to v1.15 for compatibility only"
    assert old.support_end == "v1.16, announced for April 2027"
    assert new.releases == Releases(since="v1.11")
    assert (new.core, new.end, new.support_end) == ("v1.11 and later", None, "")


def test_a_contract_without_an_announced_end_names_its_releases(folder: Path) -> None:
    edit(folder / "contracts/v1beta1/contract.yaml", lambda data: data.pop("supportEnd"))
    assert load_contract("v1beta1", folder).core == "v1.0 to v1.10"


def test_ids_sort_by_their_numbers() -> None:
    assert sorted(["IC-10", "IC-02", "CC-99"], key=get_sort_key) == ["CC-99", "IC-02", "IC-10"]


MOVE = "common/rules/move.yaml"
CONDITIONS = "v1beta1/rules/conditions.yaml"
CONTRACT = "v1beta2/contract.yaml"
MACHINE = "v1beta2/types/InfraMachine.yaml"


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        (MOVE, lambda d: d["rules"][0].update(idea=1), "idea"),
        (MOVE, lambda d: d["rules"][0].pop("hint"), "hint"),
        (MOVE, lambda d: d["rules"][1].update(id="MV-01"), "duplicate rule"),
        (MOVE, lambda d: d["rules"][0].update(id="move"), "not an id"),
        (MOVE, lambda d: d["rules"][0].update(level="WILL"), "WILL"),
        (MOVE, lambda d: d["rules"][1].pop("proof"), "neither"),
        (MOVE, lambda d: d["rules"][2].update(proof="runtime"), "both"),
        (MOVE, lambda d: d["rules"][0].pop("origin"), "origin"),
        (MOVE, lambda d: d["rules"][0].update(origin="observed"), "unlike its source"),
        (MOVE, lambda d: d["rules"][0].update(source="https://example.com/x"), "unlike its source"),
        (MOVE, lambda d: d["rules"][0].update(core={"since": "1.14"}), "since"),
        (MOVE, lambda d: d["rules"][0].update(core={"from": "v1.14"}), "from"),
        (MOVE, lambda d: d.update(more=1), "more"),
        (CONDITIONS, lambda d: d["rules"][0].update(contracts=["v1beta2"]), "v1beta1"),
        (CONTRACT, lambda d: d.update(version="v1beta1"), "folder"),
        (CONTRACT, lambda d: d.pop("core"), "core"),
        (CONTRACT, lambda d: d.update(core={"since": "1.11"}), "since"),
        (CONTRACT, lambda d: d.update(supportEnd={"core": "v1.16", "date": "2027-13"}), "date"),
        (CONTRACT, lambda d: d.update(sources=[1]), "sources"),
        (MACHINE, lambda d: d.update(role="InfraCluster"), "InfraCluster"),
        (MACHINE, lambda d: d["status"]["conditions"].update(fragment="x"), "'x'"),
        (MACHINE, lambda d: d["spec"]["providerID"].update(needed=1), "needed"),
        (MACHINE, lambda d: d.update(spec=[]), "spec"),
    ],
)
def test_broken_data_are_refused(
    folder: Path, file: str, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    edit(folder / "contracts" / file, change)
    with pytest.raises(UnreadableInput, match=message) as caught:
        load_all(folder)
    assert caught.value.finding.location.file.endswith(file)


@pytest.mark.parametrize("name", ["v1beta2/notes.yaml", "v1beta1/rules/a.txt", "../kinds/a.yml"])
def test_stray_files_are_refused(folder: Path, name: str) -> None:
    (folder / "contracts" / name).write_text("{}")
    with pytest.raises(UnreadableInput, match="is no"):
        load_all(folder)


def test_invalid_yaml_is_refused_with_its_place(folder: Path) -> None:
    (folder / "contracts/v1beta1/contract.yaml").write_text("version: v1beta1\na: [")
    with pytest.raises(UnreadableInput, match=r"(?s)invalid YAML: .*line 3"):
        load_all(folder)


@pytest.mark.parametrize("text", ["[]", ""])
def test_what_is_not_a_mapping_is_refused(folder: Path, text: str) -> None:
    (folder / "contracts/v1beta1/contract.yaml").write_text(text)
    with pytest.raises(UnreadableInput):
        load_all(folder)
