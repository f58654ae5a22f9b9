"""provider.yaml -> a resolved provider, or what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from capsmith import resources
from capsmith.contract.load import known_versions, load_contract
from capsmith.findings import Finding, ordered
from capsmith.merging.lock import SPEC_NAME
from capsmith.provider.model import Provider
from capsmith.provider.resolve import explain_resolution, link_rules, resolve
from capsmith.report import Report
from capsmith.spec.parse import parse
from capsmith.workspace.reading import read_document

__all__ = ["SPEC_NAME", "Loaded", "load", "understand", "validate"]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A provider.yaml as far as it could be understood; a provider only without errors."""

    text: str
    provider: Provider | None
    findings: tuple[Finding, ...]


def load(path: Path) -> Loaded:
    """Read, parse and resolve a provider.yaml.

    Raises UnreadableInput when there is nothing to parse.
    """
    return understand(read_document(path), str(path))


def understand(text: str, file: str) -> Loaded:
    """Parse and resolve the text of a provider.yaml; ``file`` is only named in the findings."""
    schemas = resources.schemas()
    contracts = {version: load_contract(version, schemas) for version in known_versions()}
    parsed = parse(text, file)
    if parsed.spec is None or parsed.document is None:
        return Loaded(text, None, link_rules(parsed.findings, contracts))
    resolved = resolve(parsed.spec, parsed.document, contracts)
    return Loaded(
        text, resolved.provider, ordered(link_rules(parsed.findings, contracts) + resolved.findings)
    )


def validate(path: Path) -> tuple[Report, Mapping[str, Any] | None]:
    """The findings on a provider.yaml, and all that follows from it when it is valid."""
    loaded = load(path)
    derived = explain_resolution(loaded.provider) if loaded.provider is not None else None
    return Report(findings=loaded.findings), derived
