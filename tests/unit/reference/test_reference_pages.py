"""The reference: complete, linked, the same as the rules, and committed as it is generated."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from capsmith.commands.load import load_contracts
from capsmith.commands.reference import render_reference
from capsmith.contract.explain import explain
from capsmith.contract.model import Contract
from capsmith.reference.fields import DocumentedField, list_fields
from capsmith.reference.model import make_anchor
from tests.golden.files import File, difference, read

ROOT = Path(__file__).parents[3]
CONTRACTS = {contract.version: contract for contract in load_contracts()}
RULES = {id: rule for contract in CONTRACTS.values() for id, rule in contract.rules.items()}
LINK = re.compile(r"(?<!\\)\]\(([^)\s]+)\)")


@cache
def markdown() -> dict[str, str]:
    return render_reference("markdown")


def fields_of(version: str, role: str) -> dict[str, DocumentedField]:
    return {field.path: field for field in list_fields(CONTRACTS[version], role)}


def test_the_committed_pages_are_up_to_date() -> None:
    rendered = {name: File(text, executable=False) for name, text in markdown().items()}
    changes = difference(read(ROOT / "docs" / "contracts"), rendered)
    assert not changes, f"run `capsmith reference -o docs/contracts`, and commit it:\n{changes}"


def test_there_is_a_page_for_each_contract_and_role() -> None:
    for version in CONTRACTS:
        for name in ("infra-cluster", "infra-machine", "infra-machinepool", "bootstrap-config"):
            assert f"{version}/{name}.md" in markdown()
        for name in ("control-plane", "ipam", "remediation", "provider"):
            assert f"{version}/{name}.md" in markdown()
    assert {f"rules/{rule.page}.md" for rule in RULES.values()} <= set(markdown())


@pytest.mark.parametrize("version", CONTRACTS)
def test_every_rule_of_a_contract_is_in_a_table_of_its_level(version: str) -> None:
    text = "".join(text for name, text in markdown().items() if name.startswith(f"{version}/"))
    for rule in CONTRACTS[version].rules.values():
        row = re.compile(rf"^\| \[{rule.id}\]\(\S+\) ", re.MULTILINE)
        assert row.search(text), rule.id
        for at in row.finditer(text):
            before = text[: at.start()]
            assert before.rindex(f"\n{rule.level.value} rules for ") == max(
                before.rfind(f"\n{level} rules for ") for level in ("MUST", "SHOULD", "MAY", "INFO")
            ), rule.id


@pytest.mark.parametrize("version", CONTRACTS)
def test_no_page_has_a_rule_of_another_contract_only(version: str) -> None:
    for name, text in markdown().items():
        if name.startswith(f"{version}/"):
            rows = re.findall(r"^\| \[([A-Z]+-[0-9]+)\]\(", text, re.MULTILINE)
            assert set(rows) <= set(CONTRACTS[version].rules), name


def test_links_lead_to_sections() -> None:
    headings = {
        name: {make_anchor(line) for line in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}
        for name, text in markdown().items()
    }
    checked = 0
    for name, text in markdown().items():
        for address in LINK.findall(re.sub(r"`[^`]*`", "", text)):
            if address.startswith("https://"):
                continue
            path, _, fragment = address.partition("#")
            target = (Path("/") / name).parent.joinpath(path).resolve().relative_to("/").as_posix()
            assert target in headings, (name, address)
            assert not fragment or fragment in headings[target], (name, address)
            checked += 1
    assert checked > 1000


def test_a_section_says_what_explain_says() -> None:
    plain = {
        name: re.sub(r"\s+", " ", re.sub(r"\[([^\]]+)\]\([^)]+\)|[\\`*]", r"\1", text))
        for name, text in markdown().items()
        if name.startswith("rules/")
    }
    for rule in RULES.values():
        data = explain(RULES, rule.id)
        text = plain[f"rules/{rule.page}.md"]
        for part in (data["statement"], data["consequence"], data["hint"], rule.condition):
            shown = re.sub(r"\s+", " ", re.sub(r"[`*\\]", "", part))
            assert shown in text, rule.id
        assert f"capsmith explain {rule.id}" in text


def test_rows_show_class_releases_and_check() -> None:
    page = markdown()["v1beta2/control-plane.md"]
    row = next(line for line in page.splitlines() if line.startswith("| [CP-39]"))
    assert "**breaks when core is v1.13 or older**. Under core up to v1.13" in row
    assert "| deprecated in v1.14, until v1.13 | `schema-paths` | contract: [" in row
    row = next(line for line in page.splitlines() if line.startswith("| [CP-19]"))
    assert "| Counters, drains and health checks miss the Machine. | all | test of the" in row


def test_a_field_once() -> None:
    found = fields_of("v1beta2", "InfraMachine")
    provider_id = found["spec.providerID"]
    assert provider_id.type == "string"
    assert provider_id.limits[0] == "1 to 512 characters"
    assert [rule.id for rule in provider_id.rules] == ["IM-01"]
    assert provider_id.necessity == "MUST"
    assert found["status.failureDomain"].rules[0].core.since == "v1.13"
    assert found["status.addresses[].type"].necessity == "required in its parent"
    assert found["status.addresses[].type"].inherited
    assert found["status.addresses"].necessity == "MUST, if the infrastructure reports addresses"
    # Only a rule names it: the shape of contract v1beta2 has no such field.
    assert found["spec.failureDomain"].necessity == "MAY"


def test_necessity_of_alternatives_and_of_values() -> None:
    found = fields_of("v1beta2", "ControlPlane")
    assert found["status.version"].necessity == (
        "MUST, unless status.versions is declared, if spec.version is declared; "
        "MUST, if status.versions is declared"
    )
    assert found["spec.version"].necessity.endswith("; value required")
    assert found["spec.machineTemplate.spec.readinessGates"].necessity == "SHOULD, where declared"
    assert found["spec.machineTemplate.spec.taints"].type == "list of object"
    assert "unique key, effect" in found["spec.machineTemplate.spec.taints"].limits


@pytest.mark.parametrize("version", CONTRACTS)
def test_own_fields_are_no_fields_of_the_contract(version: str) -> None:
    assert "spec.identityRef" not in fields_of(version, "InfraCluster")
    assert "spec.addressesFromPools" not in fields_of(version, "InfraMachine")
    control_plane = fields_of(version, "ControlPlane")
    assert "spec.rollout.after" in control_plane
    own = ("spec.remediation", "spec.machineNaming", "spec.rollout.before", "spec.rollout.strategy")
    assert not [path for path in control_plane if path.startswith(own)]
    assert set(fields_of(version, "IPPool")) == {"status.conditions"}
    assert fields_of(version, "Identity") == {}


@pytest.mark.parametrize("contract", CONTRACTS.values(), ids=lambda contract: contract.version)
def test_maps_and_formats(contract: Contract) -> None:
    template = {field.path: field for field in list_fields(contract, "InfraMachineTemplate")}
    assert template["status.capacity"].type == "map of integer or string"
    observed = {field.path: field for field in list_fields(contract, "InfraMachine")}
    assert observed["status.observedGeneration"].type == "integer (int64)"
