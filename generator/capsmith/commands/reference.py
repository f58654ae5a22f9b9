"""The commands `explain`, `rules` and `reference`: look up rules, write the contract reference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from capsmith import resources
from capsmith.commands.load import load_contracts
from capsmith.contract import explain as explaining
from capsmith.contract.access import load_access
from capsmith.contract.compatibility import load_compatibility
from capsmith.contract.load import load_all_rules
from capsmith.contract.pages import load_pages
from capsmith.errors import Refused
from capsmith.reference import html, markdown
from capsmith.reference.model import MARK
from capsmith.reference.pages import build_pages
from capsmith.regular_files import read_regular
from capsmith.workspace.files import replace_file, resolve_inside
from capsmith.workspace.hold import convert_disk_errors

_FORMATS = {
    "markdown": (markdown.name_file, markdown.render),
    "html": (html.name_file, html.render),
}


def render_reference(format_: str) -> dict[str, str]:
    """Return the contract reference's pages, keyed by file name.

    ``format_`` is ``markdown`` or ``html``.
    """
    file_name, render = _FORMATS[format_]
    schemas = resources.schemas()
    core = load_compatibility(schemas).core
    pages = build_pages(load_contracts(), load_pages(schemas), load_access(schemas), core)
    return {file_name(page.path): render(page) for page in pages}


def write_reference(folder: Path, format_: str) -> int:
    """Write the contract reference's pages to ``folder``, and return the number of pages.

    Only pages from an earlier run are replaced.  Raises Refused if a path is unsafe, and DiskError
    if a write fails.
    """
    texts = render_reference(format_)
    with convert_disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        files = {resolve_inside(folder, name): text for name, text in texts.items()}
        # All files are checked before the first one is replaced.
        for file in files:
            _require_replaceable(file)
        for file, text in files.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            replace_file(file, text.encode())
    return len(texts)


def _require_replaceable(file: Path) -> None:
    if file.exists() and MARK.encode() not in read_regular(file)[:200]:
        raise Refused(
            "reference-exists",
            "the file already exists and is not a page of the reference",
            file=str(file),
            hint="Choose another folder with -o, or move the file.",
        )


def explain_rule(rule_id: str) -> dict[str, Any]:
    """Return all data about a rule, as plain data. ``rule_id`` is case-insensitive.

    Raises UnreadableInput, with similar ids in its hint, if the id is unknown.
    """
    found = explaining.explain(load_all_rules(resources.schemas()), rule_id)
    return _with_source(found, _executed())


def list_rules(page: str | None, contract: str | None, level: str | None) -> list[dict[str, Any]]:
    """Return the rules that match all given filters, as plain data. None matches every rule.

    Raises UnreadableInput for a page or contract without rules.
    """
    executed = _executed()
    found = explaining.list_rules(load_all_rules(resources.schemas()), page, contract, level)
    return [_with_source(rule, executed) for rule in found]


def _executed() -> frozenset[str]:
    """Return the release series of core that tests run with."""
    core = load_compatibility(resources.schemas()).core
    return frozenset(each.series for each in core.executed)


def _with_source(rule: dict[str, Any], executed: frozenset[str]) -> dict[str, Any]:
    """Return a rule with the releases that it names and that no test runs with."""
    return {**rule, "coreFromSource": sorted(set(rule["core"].values()) - executed)}
