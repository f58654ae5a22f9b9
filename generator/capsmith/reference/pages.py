"""Build all pages: contents, access, a page for each contract version and role, and the full
rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from capsmith.contract.access import AccessTable, ManagerAccess, rank_core_series
from capsmith.contract.compatibility import Project
from capsmith.contract.load import get_sort_key
from capsmith.contract.model import AuditedTest, Contract, Origin, Rule
from capsmith.contract.pages import ContractPage as ContractPage
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

PATH = "access"
TITLE = "Who reads and writes the objects of providers"
_REPOSITORY = "https://github.com/kubernetes-sigs/cluster-api/blob"
_HEAD = (
    "Kinds",
    "Verbs",
    "Purpose",
    "Permission",
    "Rules",
    "Releases of core",
    "Source",
    "Evidence",
)
_TESTS = {
    AuditedTest.LIFECYCLE: "test_lifecycle",
    AuditedTest.TOPOLOGY: "test_clusterclass",
    AuditedTest.POOLS: "test_machine_pool",
    AuditedTest.KUBEADM: "test_kubeadm",
}


def build_access_page(
    table: AccessTable, core: Project, rules: Mapping[str, Rule]
) -> ReferencePage:
    """Build the page that lists the requests that Cluster API's managers make.

    It has links to the source of the core releases that capsmith is tested with.
    """
    texts = Texts(rules)
    blocks: list[Block] = [
        Paragraph(tuple(_introduce_access(core))),
        Items(tuple(_list_access_terms(texts, core))),
        Heading(2, "Managers"),
        _managers(table, core),
    ]
    for manager in table.managers:
        rows = (row for row in table.rows if row.manager == manager)
        cells = tuple(_row(row, core, texts, rules) for row in rows)
        blocks += [Heading(2, manager.title), Table(f"Requests of {manager.title}", _HEAD, cells)]
    return ReferencePage(PATH, TITLE, tuple(blocks))


def _introduce_access(core: Project) -> Iterator[Span]:
    read = ", ".join(each.release for each in core.executed)
    yield Link("Contents", INDEX)
    yield (
        ". The requests that Cluster API's managers send to the API server for the kinds of "
        "providers, and for objects that providers create under known names: read from the source "
        f"of {read}, and compared with the audit logs of their API servers. Reading a field of "
        "such an object makes no request of its own; the fields are on the pages of the roles."
    )


def _list_access_terms(texts: Texts, core: Project) -> Iterator[Spans]:
    kubeadm = ", ".join(each.series for each in core.executed if each.kubeadm)
    yield (
        "Verbs: as in an audit log. A manager reads objects from its cache, which a watch fills, "
        "and before client-go v0.35 (core v1.13) a list; get is a read that bypasses the cache.",
    )
    yield texts.spans(
        "Permission `label`: in some groups, the manager's own role with the wildcard `*`; in all "
        "others, a ClusterRole of the provider with the manager's label (RB-01, RB-02)."
    )
    yield texts.spans(
        "Permission `binding`: a ClusterRole of the provider, bound to the manager (RB-11)."
    )
    yield texts.spans("Permission `own`: the manager's own role; the provider grants nothing.")
    yield (
        "Evidence: the end-to-end test whose audit log must contain each verb on each kind, or why "
        "the row is read from the source only. A request that is not listed here fails every test. "
        f"kubeadm's providers run in the tests with core {kubeadm}.",
    )


def _managers(table: AccessTable, core: Project) -> Table:
    head = ("Manager", "User", "Groups of its own role", "Label", "Source")
    rows = tuple(
        (
            (manager.title,),
            (Code(manager.user),),
            _codes(manager.groups),
            _codes([manager.label] if manager.label else []),
            _sources(manager.sources, core),
        )
        for manager in table.managers
    )
    return Table("Managers, as clusterctl installs them", head, rows)


def _row(
    row: ManagerAccess, core: Project, texts: Texts, rules: Mapping[str, Rule]
) -> tuple[Spans, ...]:
    evidence: Spans = (f"Source only: {row.unseen}",)
    if row.shown is not None:
        evidence = (Code(_TESTS[row.shown]),)
    return (
        (", ".join(row.kinds),),
        (", ".join(row.verbs),),
        texts.spans(row.purpose),
        (Code(row.permission.value),),
        link_rules([rules[id] for id in row.rules]),
        (describe_releases({"since": row.since, "until": row.until}),),
        _sources(row.sources, core, row.until),
        evidence,
    )


def _codes(names: tuple[str, ...] | list[str]) -> Spans:
    found: list[Span] = []
    for name in names:
        found += [", ", Code(name)] if found else [Code(name)]
    return tuple(found) or ("-",)


def _sources(sources: Mapping[str, str], core: Project, until: str = "") -> Spans:
    """Return a link to each file, in the newest tested release that has it."""
    found: list[Span] = []
    firsts = sorted(sources, key=rank_core_series)
    for first, after in zip(firsts, [*firsts[1:], ""], strict=True):
        release = _release(core, first, after, until)
        name = sources[first].rpartition("/")[2]
        link = Link(f"{name} ({release})", url=f"{_REPOSITORY}/{release}/{sources[first]}")
        found += [", ", link] if found else [link]
    return tuple(found)


def _release(core: Project, first: str, after: str, until: str) -> str:
    """Return the newest tested release from ``first``, before ``after`` and up to ``until``.

    If there is none, return the first release of the series ``first``.
    """
    fitting = [
        each.release
        for each in core.executed
        if rank_core_series(first) <= rank_core_series(each.series)
        and not (after and rank_core_series(each.series) >= rank_core_series(after))
        and not (until and rank_core_series(each.series) > rank_core_series(until))
    ]
    return fitting[-1] if fitting else f"{first}.0"


_FIELD_HEAD = ("Path", "Type", "Limits", "Necessity", "Rules", "Releases of core", "Meaning")


class Subject(NamedTuple):
    """A topic in the contract. Each contract version has a page about it."""

    name: str
    """Name of the page, and of the file that contains its rules."""
    title: str
    roles: tuple[str, ...]
    """Roles that the page describes; empty for the page with the remaining rules."""
    table: ContractPage | None = None
    """Rule table on the contract's own page; None if that page has no table."""


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
    """Build all pages: the index, one per contract version and subject, access, and the rules.

    ``contracts`` are sorted from oldest to newest, and ``access`` is the content of the access
    page.
    """
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
    """Return the rules in a contract version that belong on the page about ``subject``.

    A subject without roles gets the rules that belong to no other subject.
    """
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
    topics = tuple(
        (
            (Link(page.title.partition(": ")[2], page.path),),
            (", ".join(_list_prefixes(page)),),
            (str(len(_list_titles(page))),),
        )
        for page in full
    )
    head = ("Topic", "Ids", "Rules")
    blocks += [Heading(2, "Rules in full"), Table("Rules by topic", head, topics)]
    return ReferencePage(INDEX, "Reference of the provider contract", tuple(blocks))


def _list_titles(page: ReferencePage) -> list[str]:
    return [block.text for block in page.blocks if isinstance(block, Heading)]


def _list_prefixes(page: ReferencePage) -> list[str]:
    """Return what the ids of the page's rules begin with, such as CC for CC-01."""
    return sorted({title.partition("-")[0] for title in _list_titles(page)})


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
        "Level: how strict the source is, in the words of RFC 2119. Origin: ",
        Code("contract"),
        " if a page of the contract says so, ",
        Code("observed"),
        " if no page says so, but Cluster API or Kubernetes behaves so, else ",
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
        " names those that no test runs, for which the rule was read from the source.",
    )
    yield (
        "Necessity: whether a CRD must declare the field, and whether objects must have it. "
        "Limits: as in the CRDs that capsmith generates.",
    )
