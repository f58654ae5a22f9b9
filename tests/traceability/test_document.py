"""The table is complete, and docs/traceability/ is up to date."""

from __future__ import annotations

import ast
import re

import pytest

from capsmith.contract.model import Level
from capsmith.reference.model import make_anchor
from tests.golden.files import File, difference, read
from tests.traceability.catalogue import ROOT
from tests.traceability.document import FOLDER, INDEX, render
from tests.traceability.table import Row, Table, table


@pytest.fixture(scope="module")
def made() -> Table:
    return table()


@pytest.fixture(scope="module")
def files(made: Table) -> dict[str, str]:
    return render(made)


def by_id(made: Table, id: str) -> Row:
    return next(row for row in made.rows if row.rule.id == id)


def test_every_rule_has_a_proof_or_a_reason(made: Table) -> None:
    assert made.mistakes == ()


def test_the_document_is_up_to_date(files: dict[str, str]) -> None:
    rendered = {name: File(text, executable=False) for name, text in files.items()}
    changes = difference(read(ROOT / FOLDER), rendered)
    assert not changes, f"run `python -m tests.traceability`, read the diff, commit it:\n{changes}"


def test_there_is_a_file_for_each_page_of_the_contract(made: Table, files: dict[str, str]) -> None:
    pages = {row.rule.page for row in made.rows}
    assert set(files) == {INDEX, *(f"{page}.md" for page in pages)}
    for row in made.rows:
        assert f"\n## {row.rule.id} " in files[f"{row.rule.page}.md"]


def test_pages_can_be_read(files: dict[str, str]) -> None:
    # An id of a test and the link to its file cannot be wrapped.
    ids = re.compile(r"^- \[(?:tests|conformance)/.*", re.MULTILINE)
    texts = (ids.sub("", text) for text in files.values())
    assert max(len(line) for text in texts for line in text.splitlines()) <= 200


def test_links_lead_somewhere(files: dict[str, str]) -> None:
    text = "".join(files.values())
    sources = set(re.findall(r"\]\(\.\./\.\./([^)#]+)", text))
    assert sources
    assert [link for link in sorted(sources) if not (ROOT / link).exists()] == []
    pages = set(re.findall(r"\]\(([\w-]+\.md)[)#]", text))
    assert pages == set(files)


def test_anchors_lead_somewhere(files: dict[str, str]) -> None:
    for name, text in files.items():
        for page, fragment in re.findall(r"\]\(([\w-]+\.md)?#([^)]+)\)", text):
            headings = re.findall(r"^#+ (.*)$", files[page or name], re.MULTILINE)
            assert fragment in {make_anchor(heading) for heading in headings}


def test_a_checked_rule_in_full(made: Table) -> None:
    row = by_id(made, "IM-01")
    assert row.place.file == "schemas/contracts/v1beta2/rules/infra-machine.yaml"
    line = (ROOT / row.place.file).read_text().splitlines()[row.place.line - 1]
    assert line.strip() == "- id: IM-01"
    targets = {target for carrier in row.carriers for target in carrier.targets}
    assert "{config}/crd/bases/{group}_{plural}.yaml" in targets
    assert any(target.endswith("/contract/v1beta2.py") for target in targets)
    assert "InfraMachine spec.providerID" in {carrier.field for carrier in row.carriers}
    assert "IM-01" in row.evidence.cases
    assert "acme" in row.evidence.repositories
    assert "homelab-v1beta1" not in row.evidence.repositories, "it follows the other contract"


def test_a_rule_on_permissions_is_carried_by_the_roles(made: Table) -> None:
    targets = {target for carrier in by_id(made, "RB-10").carriers for target in carrier.targets}
    assert "{config}/rbac/namespace_role.yaml" in targets


def test_a_rule_that_tests_prove(made: Table, files: dict[str, str]) -> None:
    row = by_id(made, "MV-08")
    assert {claim.file.partition("/")[0] for claim in row.evidence.claims} == {
        "tests",
        "runtime",
    }
    text = files["move.md"]
    assert "\n## MV-08 " in text
    assert (
        "[conformance/infrastructure/faults.py::TestInfrastructureFaults::test_a_move_keeps_what_exists]"
        in text
    )


def test_every_printed_id_is_a_test(made: Table) -> None:
    """Each id below ``tests/`` names a function of a module, or a method of a class in it."""
    claims = {(c.file, c.test) for row in made.rows for c in row.evidence.claims}
    named = {file: set[str]() for file, _ in claims if file.startswith("tests/")}
    for file, names in named.items():
        for node in ast.parse((ROOT / file).read_text(encoding="utf-8")).body:
            inner = node.body if isinstance(node, ast.ClassDef) else ()
            above = f"{node.name}::" if isinstance(node, ast.ClassDef) else ""
            functions = (ast.FunctionDef, ast.AsyncFunctionDef)
            names |= {f"{above}{n.name}" for n in (node, *inner) if isinstance(n, functions)}
    assert [(f, t) for f, t in sorted(claims) if f in named and t not in named[f]] == []


def test_information_needs_no_proof(made: Table) -> None:
    open_ones = [row for row in made.rows if row.rule.level is Level.INFO and not row.proven]
    assert open_ones
    assert all(row.reason is not None and not row.awaited for row in open_ones)


def test_no_test_of_a_generated_repository_carries_a_rule(made: Table) -> None:
    targets = {t for row in made.rows for carrier in row.carriers for t in carrier.targets}
    assert targets
    assert not [target for target in targets if target.startswith("tests/")]
