"""The rules of one contract page as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import groupby
from typing import Any, cast

import yaml

from capsmith.reference.markdown import format_row, wrap_text
from capsmith.reference.model import make_anchor
from tests.traceability.carriers import Carrier
from tests.traceability.catalogue import ROOT
from tests.traceability.claims import Claim
from tests.traceability.markdown import escape, items, link, table_head
from tests.traceability.roots import CONFORMANCE, PROJECT
from tests.traceability.table import Row

_SUBJECTS = {
    "components": "{config}/",
    "rbac": "{config}/rbac/",
    "metadata": "metadata.yaml",
    "cluster-template": "templates/cluster-template.yaml",
    "cluster-class": "templates/clusterclass-{cluster_class}.yaml",
}
_CRD = "{config}/crd/bases/"


def page(name: str, rows: list[Row]) -> str:
    """Return the page: a table of contents, then a section a rule."""
    proven = sum(row.proven for row in rows)
    return "\n".join(
        (
            f"# {name}\n",
            f"{proven} of {len(rows)} rules are proven; [the index](README.md) says how to read"
            " this page.\n",
            _contents(rows),
            *map(_section, rows),
        )
    )


def heading(row: Row) -> str:
    """Return the heading of a rule's section."""
    return f"{row.rule.id} {row.rule.title}"


def _contents(rows: Iterable[Row]) -> str:
    lines = (
        format_row(
            (
                f"[{row.rule.id}](#{make_anchor(heading(row))})",
                escape(row.rule.title),
                row.rule.level.value,
                ", ".join(row.rule.contracts),
                _summary(row),
            )
        )
        for row in rows
    )
    return table_head("Rule", "Title", "Level", "Contracts", "Proven by") + "".join(lines)


def _summary(row: Row) -> str:
    if not row.proven:
        return "-"
    kinds = (
        ("check", int(row.evidence.checked)),
        ("refusal", len(row.evidence.refusals)),
        ("test", len(set(row.evidence.claims))),
    )
    return ", ".join(f"{n} {kind}{'s' if n > 1 else ''}" for kind, n in kinds if n)


def _section(row: Row) -> str:
    rule = row.rule
    binding = f"**{rule.level.value}** ({rule.origin.value})"
    parts = [
        f"## {escape(heading(row))}\n\n",
        f"{wrap_text(f'{binding} {escape(rule.statement)}')}\n\n",
        f"Defined in {link(str(row.place), f'{row.place.file}#L{row.place.line}')}.\n",
    ]
    carried, proofs = list(_carried(row)), list(_proofs(row))
    if carried:
        parts.append(f"\nCarried by\n\n{items(carried)}")
    if proofs:
        parts.append(f"\n{'Proven' if row.proven else 'Checked'} by\n\n{items(proofs)}")
    if not row.proven:
        text = row.reason.text if row.reason is not None else "The proof is awaited."
        parts.append(f"\n{wrap_text(f'Not proven. {escape(text)}')}\n")
    return "".join(parts)


def _carried(row: Row) -> Iterator[str]:
    for (source, targets), group in groupby(row.carriers, key=lambda c: (c.source, c.targets)):
        yield _carrier(source, targets, list(group))
    if not row.carriers and row.rule.check is not None:
        subjects = sorted({_SUBJECTS.get(name, _CRD) for name in row.rule.applies_to})
        yield f"not named; the check reads {', '.join(f'`{subject}`' for subject in subjects)}"


def _carrier(source: str, targets: tuple[str, ...], group: list[Carrier]) -> str:
    fields = ", ".join(carrier.field for carrier in group if carrier.field)
    end = f" ({fields})" if fields else ""
    if not targets:
        return link(source, source) + end
    if len(targets) == 1:
        return link(f"`{targets[0]}`", source) + end
    return f"{link(source, source)}: {', '.join(f'`{target}`' for target in targets)}{end}"


def _proofs(row: Row) -> Iterator[str]:
    evidence = row.evidence
    if row.rule.check is not None:
        cases = ", ".join(link(case, f"tests/rules/{case}") for case in evidence.cases)
        held = ", ".join(evidence.repositories) or "none"
        yield f"check `{row.rule.check.name}`: cases {cases or 'none'}; repositories {held}"
    if evidence.refusals:
        cases = ", ".join(link(case, f"tests/invalid/{case}") for case in evidence.refusals)
        yield f"refused descriptions: {cases}"
    if seen := _seen().get(row.rule.id):
        what = f"{seen['refused']} mistakes that {seen['part']} refused"
        yield link(what, "tests/realapi/seed_verdicts.yaml")
    yield from map(_test, sorted(set(evidence.claims), key=lambda claim: (claim.file, claim.test)))


@cache
def _seen() -> Mapping[str, Mapping[str, Any]]:
    """Return what ``python -m tests.realapi.seed_verdicts`` has recorded, by rule."""
    text = (ROOT / "tests/realapi/seed_verdicts.yaml").read_text(encoding="utf-8")
    return cast("Mapping[str, Mapping[str, Any]]", yaml.safe_load(text))


def _test(claim: Claim) -> str:
    file = claim.file.removeprefix(PROJECT).removeprefix(CONFORMANCE).removesuffix(".jinja")
    return link(f"{file}::{claim.test}", claim.file)
