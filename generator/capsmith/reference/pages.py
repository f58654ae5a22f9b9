"""Build all pages: contents, a page for each contract and role, and the rules in full."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from capsmith.contract.access import AccessTable
from capsmith.contract.compatibility import Project
from capsmith.contract.load import get_sort_key
from capsmith.contract.model import Contract, Origin, Rule
from capsmith.contract.pages import ContractPage as ContractPage
from capsmith.reference.access import build_access_page
from capsmith.reference.fields import DocumentedField, list_fields
from capsmith.reference.model import (
    INDEX,
    Block,
    Code,
    Heading,
    Items,
    Link,
    Paragraph,
    ReferencePage,
    Span,
    Spans,
    Table,
)
from capsmith.reference.rules import (
    Texts,
    build_level_blocks,
    build_rule_pages,
    describe_releases,
    link_rules,
    name_source,
)

_FIELD_HEAD = ("Path", "Type", "Limits", "Necessity", "Rules", "Releases of core", "Meaning")


class Subject(NamedTuple):
    """The subject of one page in each contract."""

    name: str
    """Name of the page, and of its rules file."""
    title: str
    roles: tuple[str, ...]
    """Roles on the page; empty for everything that is not on the page of a role."""
    table: ContractPage | None = None
    """Table of rules on the contract's page; None if there is none."""


_OTHER_ROLES = (
    Subject("ipam", "IPPool", ("IPPool", "GlobalIPPool")),
    Subject("remediation", "Remediation", ("Remediation", "RemediationTemplate")),
)
_PROVIDER = Subject("provider", "All providers: manager, permissions and releases", ())


def build_pages(
    contracts: Sequence[Contract],
    tables: Sequence[ContractPage],
    access: AccessTable,
    core: Project,
) -> list[ReferencePage]:
    """Build the pages about ``contracts``, oldest first, and the page about ``access``."""
    found = {id: rule for contract in contracts for id, rule in contract.rules.items()}
    rules = {id: found[id] for id in sorted(found, key=get_sort_key)}
    subjects = (
        *(Subject(t.name, t.role, (t.role, f"{t.role}Template"), t) for t in tables),
        *_OTHER_ROLES,
        _PROVIDER,
    )
    full = list(build_rule_pages(rules))
    texts = Texts(rules)
    of_roles = [
        _page(contract, subject, subjects, texts) for contract in contracts for subject in subjects
    ]
    requests = build_access_page(access, core, rules)
    return [_index(contracts, subjects, requests, full), *of_roles, requests, *full]


def select_rules(contract: Contract, subject: Subject, subjects: Sequence[Subject]) -> list[Rule]:
    """Return the rules of a contract that belong on the page about ``subject``."""
    if subject.roles:
        return [rule for rule in contract.rules.values() if _is_about(rule, subject)]
    of_roles = [each for each in subjects if each.roles]
    return [
        rule
        for rule in contract.rules.values()
        if not any(_is_about(rule, each) for each in of_roles)
    ]


def _is_about(rule: Rule, subject: Subject) -> bool:
    is_of_page = rule.page == subject.name or rule.page.startswith(f"{subject.name}-")
    return is_of_page or not set(subject.roles).isdisjoint(rule.applies_to)


def _page(
    contract: Contract, subject: Subject, subjects: Sequence[Subject], texts: Texts
) -> ReferencePage:
    rules = select_rules(contract, subject, subjects)
    blocks: list[Block] = [Paragraph(_introduction(contract, subject, rules))]
    if subject.table is not None and contract.end is None:  # the tables are those of its pages
        blocks += _rows_of_page(subject.table, contract)
    for role in subject.roles:
        found = list_fields(contract, role)
        if found:
            rows = tuple(_field_row(field, texts) for field in found)
            caption = f"Fields of {role} in contract {contract.version}"
            blocks += [Heading(2, f"Fields of {role}"), Table(caption, _FIELD_HEAD, rows)]
    blocks.append(Heading(2, "Rules"))
    what = f"{subject.title} in contract {contract.version}"
    blocks += build_level_blocks(rules, subject.roles, texts, what)
    title = f"{subject.title}, contract {contract.version}"
    return ReferencePage(f"{contract.version}/{subject.name}", title, tuple(blocks))


def _introduction(contract: Contract, subject: Subject, rules: Sequence[Rule]) -> Spans:
    spans: list[Span] = [Link("Contents", INDEX), ". Releases of core: ", f"{contract.core}."]
    if contract.support_end:
        spans.append(f" Support ends with {contract.support_end}.")
    addresses = {
        rule.source.partition("#")[0]: None
        for rule in rules
        if rule.origin is Origin.CONTRACT
        and rule.source.partition("#")[0].endswith(f"/contracts/{subject.name}")
    }
    for address in addresses:
        spans += [" Page of the contract: ", Link(name_source(address), url=address), "."]
    return tuple(spans)


def _rows_of_page(table: ContractPage, contract: Contract) -> Iterator[Block]:
    """Yield the table at the top of the contract's page, with the rules in each row."""
    rows: list[tuple[Spans, ...]] = []
    for row in table.rows:
        mandatory = "Yes" if row.mandatory else f"If {row.when}" if row.when else "No"
        found = table.rules_of(row, contract.rules.values())
        cell: Spans = link_rules(found)
        if row.see:
            cell = (Link(f"{len(found)} rules", f"rules/{row.see}"),)
        rows.append(((row.title,), (mandatory,), cell))
    yield Heading(2, "Contents of the contract")
    caption = f"Rows of the contract's page on {table.role}, with the ids of their rules"
    yield Table(caption, ("Row", "Mandatory", "Rules"), tuple(rows))


def _field_row(field: DocumentedField, texts: Texts) -> tuple[Spans, ...]:
    limits: list[Span] = ["; ".join(field.limits)] if field.limits else []
    if field.pattern:
        limits += ["; ", Code(field.pattern)] if limits else [Code(field.pattern)]
    cores = [rule.core._asdict() for rule in field.rules]
    return (
        (Code(field.path),),
        (field.type,),
        tuple(limits) or ("-",),
        texts.spans(field.necessity),
        link_rules(field.rules),
        ("; ".join(dict.fromkeys(map(describe_releases, cores))),),
        (field.meaning or "-",),
    )


def _index(
    contracts: Sequence[Contract],
    subjects: Sequence[Subject],
    requests: ReferencePage,
    full: Sequence[ReferencePage],
) -> ReferencePage:
    blocks: list[Block] = [
        Paragraph(
            (
                "Cluster API's contract with providers, from the data by which capsmith generates "
                "and verifies them. A page for each contract and role lists the fields and the "
                "rules; a page for each topic has every rule in full, as ",
                Code("capsmith explain"),
                " prints it.",
            )
        ),
        Items(tuple(_legend())),
    ]
    for contract in reversed(contracts):
        blocks += [Heading(2, f"Contract {contract.version}"), _contract_table(contract, subjects)]
    blocks += [
        Heading(2, "Permissions"),
        Paragraph((Link(requests.title, requests.path), ": managers, kinds, verbs and sources.")),
    ]
    counts = tuple(
        ((Link(page.title.partition(": ")[2], page.path),), (str(_sections(page)),))
        for page in full
    )
    blocks += [Heading(2, "Rules in full"), Table("Rules by topic", ("Topic", "Rules"), counts)]
    return ReferencePage(INDEX, "Reference of the provider contract", tuple(blocks))


def _sections(page: ReferencePage) -> int:
    return sum(isinstance(block, Heading) for block in page.blocks)


def _contract_table(contract: Contract, subjects: Sequence[Subject]) -> Table:
    rows: list[tuple[Spans, ...]] = []
    for subject in subjects:
        rules = select_rules(contract, subject, subjects)
        levels = [rule.level.value for rule in rules]
        counts = [str(levels.count(level)) for level in ("MUST", "SHOULD", "MAY", "INFO")]
        link = Link(subject.title, f"{contract.version}/{subject.name}")
        rows.append(((link,), *((count,) for count in counts)))
    end = f"; support ends with {contract.support_end}" if contract.support_end else ""
    caption = f"Rules by level, contract {contract.version} (core {contract.core}{end})"
    return Table(caption, ("Page", "MUST", "SHOULD", "MAY", "INFO"), tuple(rows))


def _legend() -> Iterator[Spans]:
    yield (
        "Level: that of the source, in the words of RFC 2119. Origin: ",
        Code("contract"),
        " if a page of the contract says so, ",
        Code("observed"),
        " if Cluster API or Kubernetes only behaves so, else ",
        Code("advice"),
        ".",
    )
    yield (
        "If violated: ",
        Code("breaks"),
        " if core or clusterctl fails or misbehaves, ",
        Code("breaks when"),
        " if it does so under a condition, ",
        Code("advice"),
        " if nothing fails. Rules that no manifest can show have no class.",
    )
    yield (
        "Checked by: the check of ",
        Code("capsmith verify"),
        ", a test of the controller, or a running cluster.",
    )
    yield (
        "Releases of core: those for which the rule holds. ",
        Code("capsmith explain"),
        " names those that no test runs, and of which the rule is read from source.",
    )
    yield (
        "Necessity: whether a CRD must declare the field, and whether objects must have it. "
        "Limits: as in the CRDs that capsmith generates.",
    )
