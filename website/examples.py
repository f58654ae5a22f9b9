"""The pages of the examples: what each one is, and its kinds as a diagram."""

from __future__ import annotations

import re
from pathlib import Path

from capsmith.commands.load import load
from capsmith.output.relations import describe_kind, draw_relations, format_kind
from website.sources import ROOT

EXAMPLES = ROOT / "examples"
FOLDER = "reference/examples"
_COMMENT = re.compile(r"(?:#.*\n)*")
_HEAD = """# Examples

Descriptions of providers in `examples/`, from which the tests generate repositories.  Each page has
the kinds of one example, and the references between them, as a diagram.

| Example | |
|---|---|
"""
_PICTURE = """
The kinds of this provider, with their roles, API versions and the contracts of these, and the
fields by which kinds refer to each other.  A thick arrow leads to an object that the referring
object owns.  `docs/reference.md` of the generated repository has the same diagram;
`capsmith explain KIND` prints the part about one kind.
"""
_FRAME = (
    '<div class="diagram" tabindex="0" role="region" aria-label="Kinds and references" markdown>\n'
)


def example_pages() -> dict[str, str]:
    """Return the page of each example, and the list of all, by their paths in the site."""
    names = sorted(file.parent.name for file in EXAMPLES.glob("*/provider.yaml"))
    rows = [f"| [{name}]({name}.md) | {_describe(EXAMPLES / name)} |" for name in names]
    pages = {f"{FOLDER}/README.md": _HEAD + "\n".join(rows) + "\n"}
    return pages | {f"{FOLDER}/{name}.md": _render(EXAMPLES / name) for name in names}


def _render(folder: Path) -> str:
    provider = load(folder / "provider.yaml").provider
    assert provider is not None, folder
    source = f"../../../examples/{folder.name}"
    links = [f"Description: [provider.yaml]({source}/provider.yaml)."]
    if (folder / "README.md").exists():
        links.append(f"What it shows: [README]({source}/README.md).")
    kinds = (format_kind(describe_kind(provider, each)) for each in provider.resources)
    lines = [f"# {folder.name}\n", f"{_describe(folder)}\n", "  ".join(links), _PICTURE]
    lines += [_FRAME, "```mermaid", *draw_relations(provider), "```\n", "</div>\n"]
    lines += ["## As text\n", "````text", *(line for kind in kinds for line in kind), "````\n"]
    return "\n".join(lines)


def _describe(folder: Path) -> str:
    """Return the comment at the top of an example's description as one line."""
    text = (folder / "provider.yaml").read_text(encoding="utf-8")
    comment = _COMMENT.match(text)
    lines = comment[0].splitlines() if comment else []
    shown = (line.lstrip("# ") for line in lines if "yaml-language-server" not in line)
    text = " ".join(shown) or "The example of the documentation."
    return re.sub(r"([<>*_|\[\]])", lambda match: f"&#{ord(match[0])};", text)
