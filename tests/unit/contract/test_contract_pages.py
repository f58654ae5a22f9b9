"""Each row of the tables on the contract's pages has rules."""

from __future__ import annotations

import pytest

from capsmith import resources
from capsmith.contract.load import load_rules
from capsmith.contract.model import Level, Origin, Rule
from capsmith.contract.pages import ContractPage, PageRow, load_pages

RULES = load_rules(resources.schemas())
PAGES = load_pages(resources.schemas())
ROWS = [(page, row) for page in PAGES for row in page.rows]
SECTIONS = {
    "normal-resource",
    "deleted-resource",
    "typical-bootstrapconfig-reconciliation-workflow",
}
"""Parts of the pages on the order of a reconcile, which are in no table."""


def test_every_page_on_a_resource_is_listed() -> None:
    assert [(page.name, page.role, len(page.rows)) for page in PAGES] == [
        ("infra-cluster", "InfraCluster", 14),
        ("infra-machine", "InfraMachine", 17),
        ("infra-machinepool", "InfraMachinePool", 17),
        ("control-plane", "ControlPlane", 22),
        ("bootstrap-config", "BootstrapConfig", 16),
    ]


@pytest.mark.parametrize(
    ("page", "row"), ROWS, ids=lambda part: part.name if hasattr(part, "name") else ""
)
def test_every_row_has_a_rule_of_its_weight(page: ContractPage, row: PageRow) -> None:
    found = page.rules_of(row, RULES.values())
    assert found, f"{page.name}: no rule has row: {row.name}"
    if row.mandatory:
        assert Level.MUST in {rule.level for rule in found}, [rule.id for rule in found]


def test_a_row_does_not_count_the_rules_of_another_page() -> None:
    pages = {page.name: page for page in PAGES}

    def ids(name: str, row_name: str) -> set[str]:
        row = next(row for row in pages[name].rows if row.name == row_name)
        return {rule.id for rule in pages[name].rules_of(row, RULES.values())}

    assert ids("infra-machine", "provider-id") == {"IM-01", "IM-02"}
    assert ids("infra-machinepool", "provider-id") == {"MP-05"}
    assert {"IC-10", "ST-01"} <= ids("infra-cluster", "conditions")
    assert not {"IM-10", "CP-26"} & ids("infra-cluster", "conditions")
    assert "CC-01" in ids("control-plane", "clusterctl")


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.id)
def test_a_rule_names_a_row_of_its_page(rule: Rule) -> None:
    known = {row.name for _, row in ROWS}
    assert rule.row in {"", *known}


@pytest.mark.parametrize(
    "rule", [rule for rule in RULES.values() if rule.origin is Origin.CONTRACT], ids=lambda r: r.id
)
def test_a_rule_from_a_page_with_a_table_names_its_row(rule: Rule) -> None:
    address, _, anchor = rule.source.partition("#")
    if address.rpartition("/")[2] in {page.name for page in PAGES} and anchor not in SECTIONS:
        assert rule.row or not anchor
