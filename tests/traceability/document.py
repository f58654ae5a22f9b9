"""The table as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from capsmith.contract.model import Level
from tests.traceability.carriers import PROJECT, Carrier
from tests.traceability.claims import Claim
from tests.traceability.proofs import Evidence
from tests.traceability.reasons import Reason
from tests.traceability.table import Row, Table

PATH = "docs/traceability.md"

_UP = "../"
_HEAD = """\
# Traceability

Each rule of Cluster API's provider contract: where it is written, what carries it into a generated
repository, and what proves it.  Made by `python -m tests.traceability`; edits are lost.

- *Written*: the rule's line in `schemas/contracts`.
- *Carried*: the generated file, linked to the blueprint, shape or module that it comes from and
  that names the rule; tokens as in `blueprints/manifest.yaml`.  In italics: what the check looks
  at, where nothing names the rule.
- *Proof*: the named check, which finds the breaches of `tests/rules` and none in the repositories
  that are generated from the named descriptions (`tests/rules/test_generated.py`); descriptions
  below `tests/invalid` that are refused for it; tests that say `Proves:`.  Those in `generated/`
  are part of every generated repository, and run in each one.
"""
_SUBJECTS = {
    "components": "{config}/",
    "rbac": "{config}/rbac/",
    "metadata": "metadata.yaml",
    "cluster-template": "templates/cluster-template.yaml",
    "cluster-class": "templates/clusterclass-{cluster_class}.yaml",
}
_CRD = "{config}/crd/bases/"
_COLUMNS = "| Rule | | Contracts | Written | Carried | Proof |\n|---|---|---|---|---|---|\n"


def render(table: Table) -> str:
    """The whole document."""
    pages = [
        (name, list(rows))
        for name, rows in groupby(
            sorted(table.rows, key=lambda row: row.rule.page), key=lambda row: row.rule.page
        )
    ]
    parts = [_HEAD, _counts(pages), *(_page(name, rows) for name, rows in pages)]
    parts.append(_unproven(table.rows))
    if any(row.awaited for row in table.rows):
        parts.append(_awaited(table.rows))
    return "\n".join(parts)


def _counts(pages: list[tuple[str, list[Row]]]) -> str:
    lines = [
        "| Page | Rules | Proven | of MUST | of SHOULD and MAY | of INFO | Without proof |\n"
        "|---|---|---|---|---|---|---|\n"
    ]
    every = [row for _, rows in pages for row in rows]
    for name, rows in [*((f"[{name}](#{name})", rows) for name, rows in pages), ("all", every)]:
        proven = sum(row.proven for row in rows)
        shares = (
            _share(rows, Level.MUST),
            _share(rows, Level.SHOULD, Level.MAY),
            _share(rows, Level.INFO),
        )
        cells = (name, len(rows), proven, *shares, len(rows) - proven)
        lines.append(f"| {' | '.join(map(str, cells))} |\n")
    return "".join(lines)


def _share(rows: list[Row], *levels: Level) -> str:
    of_level = [row for row in rows if row.rule.level in levels]
    return f"{sum(row.proven for row in of_level)}/{len(of_level)}"


def _page(name: str, rows: list[Row]) -> str:
    return f"## {name}\n\n{_COLUMNS}" + "".join(f"| {' | '.join(_cells(row))} |\n" for row in rows)


def _cells(row: Row) -> Iterator[str]:
    rule = row.rule
    yield f"**{rule.id}** {_plain(rule.title)}"
    yield rule.level.value
    yield " ".join(rule.contracts)
    folder = row.place.file.removeprefix("schemas/contracts/").replace("rules/", "")
    yield f"[{folder}:{row.place.line}]({_UP}{row.place.file}#L{row.place.line})"
    yield _lines(_carried(row)) or "-"
    yield _lines(_proof(row.evidence, row)) or _open(row)


def _carried(row: Row) -> Iterator[str]:
    for (source, targets), group in groupby(row.carriers, key=lambda c: (c.source, c.targets)):
        yield from _carrier(source, targets, list(group))
    if not row.carriers and row.rule.check is not None:
        subjects = {_SUBJECTS.get(name, _CRD) for name in row.rule.applies_to}
        yield from (f"*`{subject}`*" for subject in sorted(subjects))


def _carrier(source: str, targets: tuple[str, ...], group: list[Carrier]) -> Iterator[str]:
    fields = ", ".join(carrier.field for carrier in group if carrier.field)
    if not targets:
        yield f"[{source}]({_UP}{source})"
    for target in targets:
        yield f"[`{target}`]({_UP}{source})" + (f" {fields}" if fields else "")


def _proof(evidence: Evidence, row: Row) -> Iterator[str]:
    if row.rule.check is not None:
        cases = ", ".join(f"[{case}]({_UP}tests/rules/{case})" for case in evidence.cases)
        held = ", ".join(evidence.repositories) or "nothing that is generated"
        yield f"`{row.rule.check.name}`: {cases}; {held}"
    if evidence.refusals:
        links = (f"[{case}]({_UP}tests/invalid/{case})" for case in evidence.refusals)
        yield f"refused: {', '.join(links)}"
    yield from map(_test, sorted(set(evidence.claims), key=lambda claim: (claim.file, claim.test)))


def _test(claim: Claim) -> str:
    file = claim.file.removeprefix(PROJECT).removesuffix(".jinja").removeprefix("tests/")
    return f"[{file}::{claim.test}]({_UP}{claim.file})"


def _open(row: Row) -> str:
    return "awaited" if row.awaited else "[none](#without-proof)"


def _unproven(rows: Iterable[Row]) -> str:
    by_reason: dict[Reason, list[Row]] = {}
    for row in rows:
        if row.reason is not None:
            by_reason.setdefault(row.reason, []).append(row)
    parts = ["## Without proof\n\n"]
    for reason, of_reason in by_reason.items():
        names = ", ".join(f"{row.rule.id} {_plain(row.rule.title)}" for row in of_reason)
        parts.append(f"- {reason.text}\n  *{names}*\n")
    return "".join(parts)


def _awaited(rows: Iterable[Row]) -> str:
    names = "".join(f"- {row.rule.id} {_plain(row.rule.title)}\n" for row in rows if row.awaited)
    return (
        "## Awaited\n\nProofs of these are under way (`tests/traceability/awaited.yaml`).\n\n"
        + names
    )


def _lines(parts: Iterable[str]) -> str:
    return "<br>".join(parts)


def _plain(text: str) -> str:
    return text.replace("|", "\\|")
