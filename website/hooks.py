"""Hooks of MkDocs: folders in the navigation, links into the repository, and Mermaid."""

from __future__ import annotations

import logging
import posixpath
import re
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from website.author_modules import link_names
from website.generated import generated_pages, link_titles
from website.sources import PROJECT, ROOT, pages_for, rewrite

_LOG = logging.getLogger("mkdocs.plugins.website")
_LOADED = re.compile(
    r'<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)="(?:https?:)?//[^"]*"'
)

_MERMAID = "assets/mermaid.tiny.js"
_DIAGRAM = 'class="mermaid"'


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Replace folders in the navigation by their pages."""
    config.nav = _with_folders(config.nav)
    return config


def _with_folders(entry: Any) -> Any:
    if isinstance(entry, list):
        return [_with_folders(each) for each in entry]
    if isinstance(entry, dict):
        return {title: _with_folders(value) for title, value in entry.items()}
    if not entry.endswith("/"):
        return entry
    pages = sorted(
        (ROOT / "docs" / entry).glob("*.md"), key=lambda page: (page.name != "README.md", page.name)
    )
    return [entry + page.name for page in pages]


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the generated pages, and those of linked files of the repository."""
    for path, text in generated_pages().items():
        files.append(File.generated(config, path, content=text))
    texts = [(page.src_uri, page.content_string) for page in files.documentation_pages()]
    for path, text in pages_for([*texts, ("index.md", PROJECT)]).items():
        files.append(File.generated(config, path, content=text))
    mermaid = ROOT / "website" / "vendor" / posixpath.basename(_MERMAID)
    files.append(File.generated(config, _MERMAID, abs_src_path=str(mermaid)))
    return files


def on_page_markdown(markdown: str, *, page: Page, files: Files, **_: Any) -> str:
    """Add links to generated pages; let those to files of the repository lead to their pages."""

    def is_page(path: str) -> bool:
        return files.get_file_from_path(path) is not None

    if page.file.src_uri == "author-api.md":
        markdown = link_names(markdown)
    if page.file.src_uri == "reference/README.md":
        markdown = link_titles(markdown)
    return rewrite(markdown, page.file.src_uri, is_page)


def on_post_page(output: str, *, page: Page, **_: Any) -> str:
    """Add Mermaid to a page with diagrams: the theme would load it from elsewhere.

    Warn of what a browser would load from elsewhere; a warning fails the build.
    """
    if _DIAGRAM in output:
        path = posixpath.relpath(_MERMAID, posixpath.dirname(page.file.dest_uri))
        output = output.replace("</head>", f'<script src="{path}"></script></head>', 1)
    for element in _LOADED.findall(output):
        _LOG.warning("%s loads from another host: %s", page.file.src_uri, element)
    return output
