"""Report how CRDs differ from the CRDs that their provider.yaml generates."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import yaml

from capsmith.findings import Finding, Location, Severity
from capsmith.importing.compare import Difference, DifferenceKind
from capsmith.importing.importer import ImportedCrd, has_own_kind
from capsmith.importing.refusals import Refusal
from capsmith.manifests.crds import Crd, find_wrong_types
from capsmith.manifests.parse import Manifest
from capsmith.yamldoc.compose import Path
from capsmith.yamldoc.layout import find_nearest_mark
from capsmith.yamldoc.quote import clip

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class PositionFinder:
    """Finds the lines and columns of paths. Parses each file only once."""

    def __init__(self) -> None:
        self._documents: dict[str, dict[int, yaml.Node]] = {}

    def of(self, manifest: Manifest, path: Path) -> Location:
        """Return the position of ``path`` or, if it does not exist, of its nearest existing parent.

        If an object was built from several files, return the position of the object itself.
        """
        node = self._nodes(manifest).get(manifest.line)
        if node is None:
            return manifest.location
        mark = find_nearest_mark(node, path) or node.start_mark
        return Location(manifest.file, mark.line + 1, mark.column + 1)

    def _nodes(self, manifest: Manifest) -> dict[int, yaml.Node]:
        if manifest.file not in self._documents:
            try:
                found = {
                    node.start_mark.line + 1: node
                    for node in yaml.compose_all(manifest.text, Loader=_LOADER)
                    if node is not None
                }
            except yaml.YAMLError:
                found = {}
            self._documents[manifest.file] = found
        return self._documents[manifest.file]


def find_malformed(crds: Iterable[Manifest]) -> list[Finding]:
    """Return an error (``import-malformed``) for each part of a CRD that has the wrong type."""
    positions = PositionFinder()
    return [
        Finding(
            "import-malformed",
            f"{crd.name} {format_path(path)}: {what} is required",
            positions.of(crd, path),
            hint="Import CRDs that the API server accepts.",
        )
        for crd in crds
        for path, what in find_wrong_types(crd.document)
    ]


def find_missing_schemas(crds: Iterable[Crd]) -> list[Finding]:
    """Return an error (``import-malformed``) for each version without a schema."""
    return [
        Finding(
            "import-malformed",
            f"{crd.kind} {version.name}: the version has no schema",
            crd.manifest.location,
            hint="Import the CRDs that the provider releases; the API server refuses these.",
        )
        for crd in crds
        for version in crd.versions
        if not version.schema
    ]


_MARKS = {"items": "[]", "additionalProperties": "{}"}
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_VALUES = frozenset({"field", "type", "items", "additionalProperties", "kind", "version"})
"""Differences because of which the API server drops or refuses values, even in contract fields."""
_OF_ALL = frozenset(
    {".spec", ".status", ".spec.template", ".spec.template.spec", ".spec.template.metadata"}
)
"""Parts whose shape comes from the contract if the author adds no fields."""
_LOST = "Keep it in the code, or in a patch of config/overlay."
_LOST_KIND = (
    "Add the CRD to config/overlay as a resource, declare its permissions in `rbac`, and handle its"
    " objects in your code."
)
_OF_CONTRACT = "Cluster API or capsmith requires it; compare the two and decide."
_ADDED = "Nothing to do: capsmith's manager or Cluster API uses it."


def report_differences(
    crds: Iterable[ImportedCrd], refusals: Sequence[Refusal] = ()
) -> Iterator[Finding]:
    """Yield a finding for each difference, in the order of the CRDs.

    ``import-lost`` is an error: the generated CRD lacks the part.  ``import-changed`` is a warning:
    the contract has the field, but capsmith generates it differently.  ``import-added`` is for
    information only.  ``refusals`` explain why provider.yaml cannot express a part.
    """
    positions = PositionFinder()
    reasons = {path: _reasons(path, refusals) for path in dict.fromkeys(each.path for each in crds)}
    for crd in crds:
        for difference in crd.differences:
            yield _finding(crd, difference, reasons[crd.path], positions)


def collect_facts(crds: Sequence[ImportedCrd]) -> dict[str, Any]:
    """Return the report as JSON data. Differences include the original and generated values."""
    return {
        "crds": [
            {
                "name": each.crd.manifest.name,
                "role": each.role if has_own_kind(each) else None,
                "entry": list(each.path),
                "equal": not each.differences,
                "equalButForAdditions": is_equal_but_for_additions(each),
                "differences": [_data(each, difference) for difference in each.differences],
            }
            for each in crds
        ]
    }


def summarize(crds: Sequence[ImportedCrd]) -> str:
    """Return a one-line summary with the numbers of generated, equal and lossless CRDs."""
    made = [each for each in crds if has_own_kind(each)]
    own = sum(1 for each in made if each.role == "Resource")
    equal = sum(1 for each in made if not each.differences)
    same = sum(1 for each in made if is_equal_but_for_additions(each))
    complete = sum(1 for each in made if not is_lossy(each))
    return (
        f"{len(crds)} CRDs: {len(made) - own} with a role of the contract, {own} further kinds, "
        f"{len(crds) - len(made)} not generated; {equal} are equal, {same} equal but for "
        f"additions, {complete} without losses."
    )


def is_equal_but_for_additions(crd: ImportedCrd) -> bool:
    """Return whether no object or client of the original CRD can notice the differences."""
    return all(each.is_addition for each in crd.differences)


def is_lossy(crd: ImportedCrd) -> bool:
    """Return whether the generated CRD lacks any part of the original."""
    return any(choose_severity(crd, each) is Severity.ERROR for each in crd.differences)


def choose_severity(crd: ImportedCrd, difference: Difference) -> Severity:
    """Return ERROR for a loss, INFO for an addition, and WARNING for a change."""
    is_rule = bool(difference.field) and difference.what not in _VALUES
    if is_rule and _is_of_contract(crd, difference.field):
        return Severity.WARNING
    if difference.is_addition:
        return Severity.INFO
    if difference.change is DifferenceKind.ADDED and (difference.field == "." or not is_rule):
        return Severity.WARNING
    return Severity.ERROR


def _is_of_contract(crd: ImportedCrd, field: str) -> bool:
    steps = [match.end() for match in re.finditer(r"[^.\[{]+", field)]
    above = {field[:end] for end in steps}
    if above & crd.contract_fields:
        return True
    return field in _OF_ALL


def _finding(
    crd: ImportedCrd,
    difference: Difference,
    reasons: Mapping[tuple[str, str], str],
    positions: PositionFinder,
) -> Finding:
    severity = choose_severity(crd, difference)
    ids = {
        Severity.ERROR: ("import-lost", _LOST),
        Severity.WARNING: ("import-changed", _OF_CONTRACT),
        Severity.INFO: ("import-added", _ADDED),
    }
    id, hint = ids[severity]
    reason = _reason(crd, difference, reasons) if severity is Severity.ERROR else ""
    version = f" {difference.version}" if difference.version else ""
    place = f"{crd.crd.kind}{version} {format_path(difference.path)}"
    if not difference.path:
        # Other CRDs may have the same kind.
        place, hint = crd.crd.manifest.name, _LOST_KIND
    message = f"{place}: {_words(difference)}"
    return Finding(
        id,
        message + (f" ({reason})" if reason else ""),
        positions.of(crd.crd.manifest, difference.path),
        severity,
        hint,
    )


def _words(difference: Difference) -> str:
    what = f"field {difference.field}" if difference.what == "field" else difference.what
    match difference.change:
        case DifferenceKind.MISSING:
            return f"{what} is not generated"
        case DifferenceKind.ADDED:
            value = "" if difference.what == "field" else _value(difference.generated)
            return f"{what} is added{': ' + value if value else ''}"
        case DifferenceKind.CHANGED:
            values = (_value(difference.original), _value(difference.generated))
            return f"{what} is {values[1]} instead of {values[0]}"


def _value(value: Any) -> str:
    return "" if value is None else clip(json.dumps(value, ensure_ascii=False, default=str))


def format_path(path: Path) -> str:
    """Format a path of keys and indexes as ``.spec.versions[0].name``."""
    return "".join(
        (
            f"[{step}]"
            if isinstance(step, int)
            else f".{step}" if _PLAIN.fullmatch(step) else f"[{json.dumps(step)}]"
        )
        for step in path
    )


def _reasons(kind: Path, refusals: Iterable[Refusal]) -> dict[tuple[str, str], str]:
    """Return the reasons for refusals in a kind's entry, keyed by field and keyword."""
    return {
        _field(refusal.path[2:]): f"{refusal.finding.id}: {refusal.finding.message}"
        for refusal in refusals
        if refusal.path[:2] == kind
    }


def _field(path: Path) -> tuple[str, str]:
    """Return the field and the keyword that a path in a kind's entry refers to."""
    if path[:1] == ("versions",):
        path = path[2:]
    if path[:1] == ("contractFields",):
        path = path[1:]
    if not path or path[0] not in ("spec", "status"):
        return "", str(path[0]) if path else "kind"
    field, steps = f".{path[0]}", list(path[1:])
    if steps:
        field += f".{steps.pop(0)}"
    while steps:
        step = steps.pop(0)
        if step == "properties" and steps:
            field += f".{steps.pop(0)}"
        elif step in _MARKS:
            field += _MARKS[str(step)]
        else:
            return field, str(step)
    return field, "field"


def _reason(
    crd: ImportedCrd, difference: Difference, reasons: Mapping[tuple[str, str], str]
) -> str:
    """Return the reason why provider.yaml cannot express a difference; empty if unknown."""
    field = difference.field
    if crd.role.endswith("Template"):
        field = field.replace(".spec.template.spec", ".spec", 1)
    if difference.what == "kind":
        return reasons.get(("", "kind"), "")
    if (field, difference.what) in reasons:
        return reasons[field, difference.what]
    # The reason for refusing a field applies to everything below it.
    end = len(field)
    while end > 0:
        if (field[:end], "field") in reasons:
            return reasons[field[:end], "field"]
        end = max(field.rfind(mark, 0, end) for mark in ".[{")
    is_status = field == ".status" or difference.what == "subresource status"
    if is_status and difference.change is DifferenceKind.MISSING:
        return "provider.yaml describes a status by the names of its fields, and this one has none"
    return ""


def _data(crd: ImportedCrd, difference: Difference) -> dict[str, Any]:
    return {
        "severity": str(choose_severity(crd, difference)),
        "change": str(difference.change),
        "version": difference.version or None,
        "path": format_path(difference.path),
        "field": difference.field or None,
        "what": difference.what,
        "original": difference.original,
        "generated": difference.generated,
    }
