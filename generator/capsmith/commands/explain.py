"""The command `explain` for a kind: its role, versions and references."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

from capsmith.commands.load import load
from capsmith.errors import UnreadableInput
from capsmith.output.relations import describe_kind
from capsmith.report import Report


def explain_kind(path: Path, kind: str) -> tuple[Report, dict[str, Any] | None]:
    """Return findings about the provider.yaml at ``path``, and all data about one of its kinds.

    The data is None if the file is invalid; the report then gives the reason.  Raises
    UnreadableInput if the file cannot be read or does not declare the kind; the hint then lists
    similar names, or all kinds if none is similar.
    """
    if not path.exists():
        raise UnreadableInput(
            "rule-unknown",
            f"{kind!r} is not the id of a rule, and there is no {path} that could declare the kind",
            hint="Run this in the repository of a provider, or name its provider.yaml with --spec.",
        )
    loaded = load(path)
    report = Report().with_findings(loaded.findings)
    if loaded.provider is None:
        return report, None
    kinds = {str(resource.kind): resource for resource in loaded.provider.resources}
    if kind not in kinds:
        near = difflib.get_close_matches(kind, kinds, n=3)
        raise UnreadableInput(
            "kind-unknown",
            f"{path} declares no kind {kind!r}",
            hint=f"Did you mean {', '.join(near)}?" if near else f"It has {', '.join(kinds)}.",
        )
    return report, describe_kind(loaded.provider, kinds[kind])
