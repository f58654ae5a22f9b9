"""The public modules of the author API and their names, as ``docs/author-api.md`` lists them.

A test compares the lists with what the runtime exports.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Final

FOLDER: Final = "reference/author-api/"
RUNTIME: Final = "capsmith_runtime"
TESTING: Final = f"{RUNTIME}.testing"
GROUPS: Final = {
    "Reconciler": "Reconcilers",
    "Class": "Base classes",
    "Argument": "Arguments",
    "Argument or result": "Arguments and results",
    "Result": "Results",
    "Other": "Other names",
    "Builder": "Builders",
}
"""Headings of the pages, by the first cell of a table."""

_SAME_AS_MODULE: Final = {
    f"{RUNTIME}.bootstrap.cloud_config": f"{RUNTIME}.bootstrap.cloud_config.cloud_config",
}
"""Functions that have the name of their module, which hides them from mkdocstrings."""
_SOURCE: Final = Path(__file__).parents[1] / "docs" / "author-api.md"
_HEADING: Final = re.compile(r"^(#{2,3} .*)$", re.MULTILINE)
_MODULE: Final = re.compile(rf"#+ (?P<title>.*): `(?P<path>{RUNTIME}\.[.\w]+)`")
_TABLE: Final = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)
_NAME: Final = re.compile(r"`(\w+)[^`]*`")
_SHARED: Final = "Shared names:"


@dataclass(frozen=True, slots=True)
class Module:
    """A public module: the names that authors import from it."""

    path: str
    title: str
    groups: dict[str, tuple[str, ...]]
    """Names by the first cell of their table."""
    shared: tuple[str, ...] = ()
    """Names that other modules have as well."""

    def own_names(self) -> tuple[str, ...]:
        """Return the names of all groups."""
        return tuple(chain(*self.groups.values()))

    def entries(self) -> dict[str, str]:
        """Return the full name of each name of its own."""
        paths = {name: f"{self.path}.{name}" for name in self.own_names()}
        return {name: _SAME_AS_MODULE.get(path, path) for name, path in paths.items()}

    @property
    def tests(self) -> str:
        """Return the path of the module with builders for its tests."""
        return self.path.replace(RUNTIME, TESTING, 1)

    @property
    def page(self) -> str:
        """Return the path of its page in the site."""
        return f"{FOLDER}{self.path.removeprefix(RUNTIME + '.').replace('.', '-')}.md"


def author_modules() -> list[Module]:
    """Return the modules for each provider type, in the order of ``docs/author-api.md``."""
    found = [
        Module(path, title, _tables(text), _names(_shared_line(text)))
        for path, title, text in _sections(_SOURCE.read_text(encoding="utf-8"))
    ]
    modules = [each for each in found if each.groups]
    counts = Counter(name for each in modules for name in each.own_names())
    several = {name for name, count in counts.items() if count > 1}
    return [_with_shared(each, several) for each in modules]


def shared_names(modules: list[Module]) -> dict[str, str]:
    """Return the full name of each shared name, in one of the modules that have it."""
    found: dict[str, str] = {}
    for module in modules:
        for name in module.shared:
            found.setdefault(name, f"{module.path}.{name}")
    return dict(sorted(found.items()))


def link_names(markdown: str) -> str:
    """Return the text of ``docs/author-api.md`` with links from names to their entries."""
    modules = author_modules()
    shared = shared_names(modules)
    entries = {each.path: shared | each.entries() for each in modules}
    pages = {each.path: each.page for each in modules}
    parts = _HEADING.split(markdown)
    for at in range(1, len(parts), 2):
        path = _module_of(parts[at])[0]
        if path in pages:
            reference = f"\n\n[Signatures, types and defaults]({pages[path]})"
            parts[at + 1] = reference + _linked(parts[at + 1], entries[path])
        elif parts[at] == "## Shared names":
            parts[at + 1] = _linked(parts[at + 1], shared)
    return "".join(parts)


def _linked(text: str, entries: dict[str, str]) -> str:
    def link(match: re.Match[str]) -> str:
        entry = entries.get(match[1])
        return f"[{match[0]}][{entry}]" if entry else match[0]

    lines = text.split("\n")
    for number, line in enumerate(lines):
        if line.startswith("| `"):
            lines[number] = _NAME.sub(link, line, count=1)
        elif line.startswith(_SHARED):
            lines[number] = _NAME.sub(link, line)
    return "\n".join(lines)


def _sections(page: str) -> Iterator[tuple[str, str, str]]:
    """Yield path, title and text of each section on a module."""
    parts = _HEADING.split(page)
    for heading, text in zip(parts[1::2], parts[2::2], strict=True):
        path, title = _module_of(heading)
        if path:
            yield path, title, text


def _module_of(heading: str) -> tuple[str, str]:
    """Return path and title of the module that a heading names; empty if it names none."""
    match = _MODULE.match(heading)
    return (match["path"], match["title"]) if match else ("", "")


def _tables(text: str) -> dict[str, tuple[str, ...]]:
    tables: dict[str, tuple[str, ...]] = {}
    for table in _TABLE.findall(text):
        head, _, *rows = table.splitlines()
        group = head.split("|")[1].strip()
        if group in GROUPS:
            tables[group] = tuple(name for row in rows for name in _names(row.split("|")[1]))
    return tables


def _shared_line(text: str) -> str:
    return next((line for line in text.splitlines() if line.startswith(_SHARED)), "")


def _names(text: str) -> tuple[str, ...]:
    return tuple(_NAME.findall(text))


def _with_shared(module: Module, shared: set[str]) -> Module:
    """Return the module, with those of its own names as shared ones that others have too."""
    groups = {
        group: tuple(name for name in names if name not in shared)
        for group, names in module.groups.items()
    }
    also = tuple(name for name in module.own_names() if name in shared)
    return replace(module, groups=groups, shared=module.shared + also)
