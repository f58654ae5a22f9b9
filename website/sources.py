"""Links from pages to files of the repository that are not pages.

Such a file becomes a page below ``repository/``: the site has no address of the repository to link
to, and is complete without network.  Knows nothing of MkDocs.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = "[](../CHANGELOG.md) [](../CONTRIBUTING.md) [](../SECURITY.md)"
"""Links to files of the repository that are in the navigation."""
PREFIX = "repository/"
WITHOUT_PAGE = "docs/traceability/"
"""Links to it become plain text: its pages link to hundreds of files."""

_FENCED = re.compile(r"^( *)(```+).*?^\1\2 *$", re.MULTILINE | re.DOTALL)
# The text of a link and inline code may go on in the next line, but not in the next paragraph.
_LINK = re.compile(
    r"\[(?P<text>(?:[^\]\n]|\n(?![ \t]*\n))*)\]\((?P<path>[^)\s#:]+)(?P<anchor>#[^)\s]*)?\)"
)
_CODE = re.compile(r"`(?:[^`\n]|\n(?![ \t]*\n))+`")
_LANGUAGES = {".py": "python", ".yaml": "yaml", ".yml": "yaml", ".json": "json", ".jinja": "jinja"}


def rewrite(markdown: str, page: str, is_page: Callable[[str], bool]) -> str:
    """Return the text of a page with links that work in the site.

    ``page`` is the page's path in the site, ``is_page`` says which paths the site has.
    """

    def replaced(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(_folder(page), match["path"]))
        if path.startswith(WITHOUT_PAGE):
            return match["text"]
        target = path.removeprefix("docs/") if path.startswith("docs/") else page_of(path)
        if target is None or not is_page(target):
            return match[0]
        relative = posixpath.relpath(target, posixpath.dirname(page) or ".")
        anchor = match["anchor"] or "" if target.endswith(".md") else ""
        return f"[{match['text']}]({relative}{anchor if _is_markdown(path) else ''})"

    return "".join(
        text if is_code else _LINK.sub(replaced, text) for text, is_code in _pieces(markdown)
    )


def pages_for(texts: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return pages for the files to which the pages ``(path, text)``, and the new ones, link."""
    pages: dict[str, str] = {}
    waiting = list(texts)
    while waiting:
        page, text = waiting.pop()
        for path in _linked(page, text):
            target = page_of(path)
            if target is not None and target not in pages:
                pages[target] = _content(path)
                waiting.append((target, pages[target]))
    return pages


def page_of(path: str) -> str | None:
    """Return the path in the site of a file or folder of the repository; None if there is none."""
    found = ROOT / path
    if path.startswith("..") or not found.exists():
        return None
    if found.is_dir():
        index = posixpath.join(path, "README.md")
        return PREFIX + (index if (ROOT / index).exists() else posixpath.join(path, "index.md"))
    # MkDocs leaves out files whose names begin with a dot.
    return PREFIX + (path if _is_markdown(path) else f"{path}.md").lstrip(".").replace("/.", "/")


def _linked(page: str, text: str) -> Iterator[str]:
    for piece, is_code in _pieces(text):
        for match in () if is_code else _LINK.finditer(piece):
            path = posixpath.normpath(posixpath.join(_folder(page), match["path"]))
            if not path.startswith("docs/"):
                yield path


def _folder(page: str) -> str:
    """Return the folder in the repository to which the links of a page are relative."""
    if page.startswith(PREFIX):
        return posixpath.dirname(page.removeprefix(PREFIX))
    return posixpath.dirname(f"docs/{page}")


def _content(path: str) -> str:
    found = ROOT / path
    if found.is_dir() and not (found / "README.md").exists():
        names = sorted(each.name + "/" * each.is_dir() for each in found.iterdir())
        shown = [f"- `{name}`" for name in names if not name.startswith(("_", "."))]
        return _front_matter(f"# {path}\n\n" + "\n".join(shown) + "\n")
    if found.is_dir():
        found /= "README.md"
    text = found.read_text(encoding="utf-8")
    if _is_markdown(found.name):
        return text
    language = _LANGUAGES.get(found.suffix, "text")
    return _front_matter(f"# {path}\n\n````{language}\n{text.rstrip()}\n````\n")


def _front_matter(text: str) -> str:
    return f"---\nsearch: {{exclude: true}}\n---\n{text}"


def _is_markdown(path: str) -> bool:
    return path.endswith(".md") or (ROOT / path / "README.md").exists()


def _pieces(markdown: str) -> Iterator[tuple[str, bool]]:
    """Yield the text in parts, and whether each is code, in which nothing is a link."""
    at = 0
    for fence in _FENCED.finditer(markdown):
        yield from _inline(markdown[at : fence.start()])
        yield fence[0], True
        at = fence.end()
    yield from _inline(markdown[at:])


def _inline(text: str) -> Iterator[tuple[str, bool]]:
    # A link may have code as its text, so code counts only where it is not in brackets.
    at = 0
    for code in _CODE.finditer(text):
        if text[: code.start()].endswith("[") or text[code.end() :].startswith("]("):
            continue
        yield text[at : code.start()], False
        yield code[0], True
        at = code.end()
    yield text[at:], False
