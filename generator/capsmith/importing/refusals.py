"""Remove the parts of a provider.yaml that its checks refuse, and record the reasons.

The checks alone decide what can be imported; everything that they accept is imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from capsmith.contract.model import Contract
from capsmith.findings import Finding, Severity
from capsmith.provider.draft import Draft
from capsmith.provider.model import Provider
from capsmith.provider_yaml.parse import validate_document
from capsmith.resolving.resolve import resolve
from capsmith.yamldoc.compose import Mark, Path
from capsmith.yamldoc.document import Document

_ROUNDS = 30
_SECTIONS = ("infrastructure", "bootstrap", "controlPlane", "ipam", "addon", "credentials")
_OF_POOLS = "pool-"
"""Prefix of the findings on pools with a Machine for each infrastructure machine."""
_KIND = 2
"""Number of keys in the path to a kind."""
_FIELDS = ("spec", "status")


class Refusal(NamedTuple):
    """A part that was removed from provider.yaml, and the finding that was the reason."""

    path: Path
    finding: Finding


class CheckedData(NamedTuple):
    """Findings about a provider.yaml's data, and the draft if the data matches the model."""

    document: Document
    findings: tuple[Finding, ...]
    draft: Draft | None
    provider: Provider | None


def check_data(data: Mapping[str, Any], contracts: Mapping[str, Contract]) -> CheckedData:
    """Check a provider.yaml's data without writing and parsing YAML.

    Each value is assigned its own line number, so that a finding's line identifies its path.
    """
    document = _document(data)
    parsed = validate_document(document)
    if parsed.spec is None:
        return CheckedData(document, parsed.findings, None, None)
    resolved = resolve(parsed.spec, document, contracts)
    findings = (*parsed.findings, *resolved.findings)
    return CheckedData(document, findings, resolved.draft, resolved.provider)


def remove_refused(
    data: dict[str, Any], contracts: Mapping[str, Contract]
) -> tuple[CheckedData, tuple[Refusal, ...]]:
    """Remove refused parts from ``data`` until nothing that can be removed is refused.

    Modifies ``data``.  Returns the result of the last check, with the findings that remain, and the
    removed parts.
    """
    # A removal can cause further findings, for example on a rule that reads the removed field.  The
    # limit only guards against a check that would blame a different part every time.
    removed: list[Refusal] = []
    for _ in range(_ROUNDS):
        checked = check_data(data, contracts)
        # Items of a list are removed from the end, so that the other paths stay valid.
        refused = sorted(_refused(checked), key=lambda each: _order(each.path), reverse=True)
        done = [refusal for refusal in refused if _remove(data, refusal.path)]
        removed += done
        if not done:
            return checked, tuple(removed)
    return check_data(data, contracts), tuple(removed)


def _document(data: Mapping[str, Any]) -> Document:
    marks: dict[Path, Mark] = {}
    _mark(data, (), marks)
    return Document("", data, marks)


def _mark(value: Any, path: Path, marks: dict[Path, Mark]) -> None:
    line = len(marks) + 1
    marks[path] = Mark((line, 1), (line, 2))
    below = dict(enumerate(value)) if isinstance(value, list) else value
    for key, each in below.items() if isinstance(below, Mapping) else ():
        _mark(each, (*path, key), marks)


def _refused(checked: CheckedData) -> list[Refusal]:
    paths = {mark.value[0]: path for path, mark in checked.document.marks.items()}
    found: dict[Path, Refusal] = {}
    for finding in checked.findings:
        path = _whole(paths.get(finding.location.line, ()))
        if finding.id.startswith(_OF_POOLS):
            feature = (*path[:_KIND], "features", "machines")
            path = feature if feature in checked.document.marks else path
        if finding.severity is Severity.ERROR and _is_removable(path):
            found.setdefault(path, Refusal(path, finding))
    return list(found.values())


def _is_removable(path: Path) -> bool:
    return len(path) >= _KIND and path[0] in _SECTIONS


def _whole(path: Path) -> Path:
    """Return the path to the smallest meaningful part: a whole rule, not its expression."""
    for key in ("x-kubernetes-validations", "validations", "printerColumns"):
        if key in path[_KIND:-1]:
            index = path.index(key, _KIND)
            return path[: index + 2]
    return path


def _order(path: Path) -> tuple[int, tuple[str, ...]]:
    return len(path), tuple(f"{step:09}" if isinstance(step, int) else str(step) for step in path)


def _remove(data: Any, path: Path) -> bool:
    """Remove the value at ``path``, and parents that become empty; return whether it existed."""
    holders = [data]
    for step in path[:-1]:
        # Indexing a string would give a character, not a part of the data.
        if isinstance(holders[-1], str):
            return False
        try:
            holders.append(holders[-1][step])
        except (KeyError, IndexError, TypeError):
            return False
    try:
        del holders[-1][path[-1]]
    except (KeyError, IndexError, TypeError):
        return False
    for depth in range(len(path) - 1, 0, -1):
        if holders[depth]:
            break
        del holders[depth - 1][path[depth - 1]]
    return True
