"""Render pages as GitHub-flavoured Markdown."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

from capsmith.reference.model import (
    INDEX,
    MARK,
    Block,
    Code,
    CodeBlock,
    Heading,
    Items,
    Link,
    Paragraph,
    ReferencePage,
    Span,
    Strong,
    Table,
    make_anchor,
    make_relative,
)

_WIDTH = 100


def name_file(path: str) -> str:
    """Return a page's file name. A folder's index page is its ``README.md``."""
    return "README.md" if path == INDEX else f"{path}.md"


def render(page: ReferencePage) -> str:
    """Render a page as Markdown, ending with a newline."""
    blocks = (_block(block, page.path) for block in page.blocks)
    return "\n".join((f"{MARK}\n", f"# {_escaped(page.title)}\n", *blocks))


def _block(block: Block, path: str) -> str:
    match block:
        case Heading(level, text):
            return f"{'#' * level} {_escaped(text)}\n"
        case Paragraph(spans):
            return f"{wrap_text(_spans(spans, path))}\n"
        case Items(entries):
            return "".join(f"{wrap_text(_spans(each, path), '- ', '  ')}\n" for each in entries)
        case CodeBlock(text):
            return f"```yaml\n{text}```\n"
        case Table():
            return _table(block, path)


def _table(table: Table, path: str) -> str:
    rows = ((_spans(cell, path).replace("|", "\\|") for cell in row) for row in table.rows)
    lines = [format_row(table.head), "|---" * len(table.head) + "|\n", *map(format_row, rows)]
    return f"{_escaped(table.caption)}:\n\n{''.join(lines)}"


def format_row(cells: Iterable[object]) -> str:
    """Format one row of a Markdown table."""
    return f"| {' | '.join(map(str, cells))} |\n"


def _spans(spans: Iterable[Span], path: str) -> str:
    return "".join(_span(span, path) for span in spans)


def _span(span: Span, path: str) -> str:
    match span:
        case Code(text):
            return f"`{text}`"
        case Strong(text):
            return f"**{_escaped(text)}**"
        case Link():
            return f"[{_escaped(span.text)}]({_address(span, path)})"
        case _:
            return _escaped(span)


def _address(link: Link, path: str) -> str:
    if link.url:
        return link.url
    fragment = f"#{make_anchor(link.heading)}" if link.heading else ""
    return f"{make_relative(path, name_file(link.page))}{fragment}"


def _escaped(text: str) -> str:
    return re.sub(r"([<*\[\]_\\])", r"\\\1", text)


def wrap_text(text: str, first: str = "", further: str = "") -> str:
    """Wrap text at spaces.

    ``first`` indents the first line, and ``further`` all other lines.  Lines with long links may
    exceed the width.
    """
    return textwrap.fill(
        text,
        _WIDTH,
        initial_indent=first,
        subsequent_indent=further,
        break_long_words=False,
        break_on_hyphens=False,
    )
