"""provider.yaml -> a resolved provider, or what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from capsmith import resources
from capsmith.contract.load import known_versions, load_contract
from capsmith.findings import Finding, has_errors, ordered
from capsmith.merging.lock import SPEC_NAME
from capsmith.provider.model import Provider
from capsmith.provider.resolve import explain_resolution, link_rules, resolve
from capsmith.report import Report
from capsmith.spec.parse import parse
from capsmith.workspace.reading import read_document

if TYPE_CHECKING:
    from capsmith.blueprint.overlay import Overlay

__all__ = ["SPEC_NAME", "Loaded", "load", "understand", "validate"]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A provider.yaml as far as it could be understood; a provider only without errors."""

    text: str
    provider: Provider | None
    findings: tuple[Finding, ...]
    blueprints: str = ""
    """The folder of an overlay that it names, if it does."""
    overlay: Overlay | None = None


def load(path: Path, blueprints: Path | None = None) -> Loaded:
    """Read, parse and resolve a provider.yaml, and the overlay that it or ``blueprints`` names.

    Raises UnreadableInput when there is nothing to parse, or no such folder.
    """
    loaded = understand(read_document(path), str(path))
    if blueprints is None and not loaded.blueprints:
        return loaded
    from capsmith.pipeline.overlaying import with_overlay

    return with_overlay(loaded, path, blueprints)


def understand(text: str, file: str) -> Loaded:
    """Parse and resolve the text of a provider.yaml; ``file`` is only named in the findings."""
    schemas = resources.schemas()
    contracts = {version: load_contract(version, schemas) for version in known_versions()}
    parsed = parse(text, file)
    if parsed.spec is None or parsed.document is None:
        return Loaded(text, None, link_rules(parsed.findings, contracts))
    resolved = resolve(parsed.spec, parsed.document, contracts)
    findings = ordered(link_rules(parsed.findings, contracts) + resolved.findings)
    return Loaded(text, resolved.provider, findings, parsed.spec.blueprints or "")


def validate(path: Path, blueprints: Path | None = None) -> tuple[Report, Mapping[str, Any] | None]:
    """The findings on a provider.yaml, and all that follows from it when it is valid.

    With an overlay also those on what it makes of the provider.
    """
    loaded = load(path, blueprints)
    findings = loaded.findings
    if loaded.overlay is not None and not has_errors(findings):
        from capsmith.pipeline.overlaying import tried

        findings = tried(loaded)
    derived = explain_resolution(loaded.provider) if loaded.provider is not None else None
    return Report(findings=findings), derived
