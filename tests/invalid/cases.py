"""The cases, and the findings that capsmith reports for one."""

from __future__ import annotations

from pathlib import Path

from capsmith import resources
from capsmith.contract.load import list_versions, load_contract
from capsmith.findings import Finding
from capsmith.provider_yaml.parse import parse
from capsmith.report import Report
from capsmith.resolving.resolve import resolve

FOLDER = Path(__file__).parent
EXAMPLES = FOLDER.parents[1] / "examples"
CONTRACTS = {version: load_contract(version, resources.schemas()) for version in list_versions()}


def cases() -> list[str]:
    """Return the names of the folders."""
    return sorted(folder.parent.name for folder in FOLDER.glob("*/provider.yaml"))


def judge(text: str, file: str = "provider.yaml") -> tuple[Finding, ...]:
    """Return all findings on a description: first on its form, then on what it means together."""
    parsed = parse(text, file)
    if parsed.spec is None or parsed.document is None:
        return Report(parsed.findings).findings
    resolved = resolve(parsed.spec, parsed.document, CONTRACTS)
    return Report(parsed.findings).findings + Report(resolved.findings).findings


def text_of(findings: tuple[Finding, ...]) -> str:
    """Format one finding on each line: ``file:line:col: severity id: message``."""
    return "".join(f"{f.location}: {f.severity} {f.id}: {f.message}\n" for f in findings)
