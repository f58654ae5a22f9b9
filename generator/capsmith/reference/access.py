"""Build the page about managers that access providers' objects, and the required permissions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from capsmith.contract.access import AccessTable, ManagerAccess, series_order
from capsmith.contract.compatibility import Project
from capsmith.contract.model import AuditedTest, Rule
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
from capsmith.reference.rules import Texts, describe_releases, link_rules

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
    """Build the page, with links to the sources of all releases of ``core`` that tests run with."""
    texts = Texts(rules)
    blocks: list[Block] = [
        Paragraph(tuple(_introduction(core))),
        Items(tuple(_legend(texts, core))),
        Heading(2, "Managers"),
        _managers(table, core),
    ]
    for manager in table.managers:
        rows = (row for row in table.rows if row.manager == manager)
        cells = tuple(_row(row, core, texts, rules) for row in rows)
        blocks += [Heading(2, manager.title), Table(f"Requests of {manager.title}", _HEAD, cells)]
    return ReferencePage(PATH, TITLE, tuple(blocks))


def _introduction(core: Project) -> Iterator[Span]:
    read = ", ".join(each.release for each in core.executed)
    yield Link("Contents", INDEX)
    yield (
        ". What the managers of Cluster API request from the API server on the kinds of providers, "
        "and on what providers make by name: read from the source of "
        f"{read}, and compared with the audit logs of their API servers. Reading a field of such "
        "an object makes no request of its own; the fields are on the pages of the roles."
    )


def _legend(texts: Texts, core: Project) -> Iterator[Spans]:
    kubeadm = ", ".join(each.series for each in core.executed if each.kubeadm)
    yield (
        "Verbs: as in an audit log. An object that a manager reads is in its cache, which a watch "
        "fills, and before client-go v0.35 (core v1.13) a list; get is a read without cache.",
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
        "Evidence: the end-to-end test in whose audit log each verb on each kind has to be, or why "
        "the row is read from the source only. No test may find a request that is not here. "
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
    firsts = sorted(sources, key=series_order)
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
        if series_order(first) <= series_order(each.series)
        and not (after and series_order(each.series) >= series_order(after))
        and not (until and series_order(each.series) > series_order(until))
    ]
    return fitting[-1] if fitting else f"{first}.0"
