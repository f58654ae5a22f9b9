"""All pages whose blocks and names are checked: this repository's, and those of generated ones."""

from __future__ import annotations

import functools
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from capsmith.commands.build import build
from capsmith.commands.load import load
from tests.golden.cases import Case, cases
from tests.website.blocks import Block, blocks

ROOT = Path(__file__).parents[2]
ACME = ROOT / "examples" / "acme" / "provider.yaml"
_ENTRIES = Path(__file__).parent / "blocks.yaml"
_OWN = (
    "*.md",
    "docs/**/*.md",
    "examples/*/README.md",
    "benchmarks/*.md",
    "requirements/*.md",
    "runtime/*.md",
    "tests/*/*.md",
)
GITLAB = "gitlab"
"""The name of a repository that is generated here, and no example."""
WHOLE = "whole"
"""The key of a page that is run as a script."""
_GENERATED = ("docs/checks.md", "docs/contracts/", "docs/traceability/")
"""Pages that are generated from data, and compared with it by other tests."""


@dataclass(frozen=True)
class Page:
    """A page of this repository, or of a generated one."""

    source: str
    """The file that an author edits: of a generated page, its blueprint."""

    text: str
    repository: str = ""
    """The repository of a generated page."""

    @property
    def is_generated(self) -> bool:
        """Return whether capsmith generates the page."""
        return bool(self.repository)

    @property
    def example(self) -> str:
        """Return the example in whose repository a reader is; empty for this repository."""
        if self.repository == GITLAB or self.source.startswith(("docs/", "examples/")):
            return "acme"
        return self.repository


@dataclass(frozen=True)
class Shown:
    """A block, with what is declared about it in blocks.yaml."""

    page: Page
    block: Block
    entry: dict[str, Any]

    def __str__(self) -> str:
        place = f"{self.page.repository}:" if self.page.is_generated else ""
        return f"{place}{self.page.source}:{self.block.line}"


@functools.cache
def pages() -> tuple[Page, ...]:
    """Return all pages."""
    own = {path for pattern in _OWN for path in ROOT.glob(pattern)}
    names = sorted(path.relative_to(ROOT).as_posix() for path in own)
    kept = [name for name in names if not name.startswith(_GENERATED)]
    return (
        *(Page(name, (ROOT / name).read_text(encoding="utf-8")) for name in kept),
        *(page for case in cases() for page in _expected(case)),
        *_hosted_on_gitlab(),
    )


def _expected(case: Case) -> list[Page]:
    folder = case.expected
    return [
        Page(_blueprint(path.relative_to(folder)), path.read_text("utf-8"), case.name)
        for path in sorted(folder.rglob("*.md"))
    ]


def _hosted_on_gitlab() -> list[Page]:
    """Return the pages of a provider on GitLab: no example is there, and the text differs."""
    text = ACME.read_text(encoding="utf-8").replace("https://github.com", "https://gitlab.com")
    with tempfile.TemporaryDirectory() as folder:
        spec = Path(folder) / "provider.yaml"
        spec.write_text(text, encoding="utf-8")
        provider = load(spec).provider
    assert provider is not None
    tree = build(provider)
    return [Page(_blueprint(Path("README.md")), tree["README.md"].text, GITLAB)]


def _blueprint(path: Path) -> str:
    return f"blueprints/project/{path.as_posix()}.jinja"


@functools.cache
def entries() -> dict[str, dict[str, dict[str, Any]]]:
    """Return what blocks.yaml declares, by page and by the beginning of a block."""
    found: dict[str, dict[str, dict[str, Any]]] = yaml.safe_load(_ENTRIES.read_text("utf-8"))
    return found


def matching(page: Page, block: Block) -> list[str]:
    """Return the keys of the entries for a block; it should be one."""
    found = entries().get(page.source, {})
    if WHOLE in found and (block.title or block.language == "sh"):
        return [WHOLE]
    return [key for key in found if block.text.startswith(key)]


def declared(kind: str) -> list[Shown]:
    """Return the blocks whose entry has ``kind``; the same text in several repositories once."""
    found: dict[tuple[str, str], Shown] = {}
    for page in pages():
        for block in blocks(page.text):
            for key in matching(page, block):
                entry = entries()[page.source][key]
                if kind in entry:
                    found.setdefault((page.source, block.text), Shown(page, block, entry))
    return list(found.values())
