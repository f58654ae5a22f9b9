"""The command `validate`: report findings about a provider.yaml, and values derived from it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from capsmith.commands.load import load
from capsmith.findings import has_errors
from capsmith.output.explain import explain_resolution
from capsmith.report import Report


def validate(path: Path, blueprints: Path | None = None) -> tuple[Report, Mapping[str, Any] | None]:
    """Return findings about a provider.yaml and, if it is valid, everything derived from it.

    The second value is plain data, or None if there are errors.  Findings about files that an
    overlay generates are included.
    """
    loaded = load(path, blueprints)
    findings, provider = loaded.findings, loaded.provider
    if loaded.overlay is not None and provider is not None and not has_errors(findings):
        # Imported here because only an overlay has to be rendered to be checked.
        from capsmith.commands.build import build_overlaid

        findings = (*findings, *build_overlaid(provider, loaded.overlay)[1])
    resolution = explain_resolution(provider) if provider is not None else None
    return Report().with_findings(findings), resolution
