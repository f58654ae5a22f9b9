"""Render pages as self-contained HTML: no scripts, and no external style sheets or images."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from jinja2 import Environment, StrictUndefined, Template

from capsmith.reference.model import (
    MARK,
    Block,
    Link,
    ReferencePage,
    Span,
    make_anchor,
    make_relative,
)


def name_file(path: str) -> str:
    """Return a page's file name, ending in ``.html``."""
    return f"{path}.html"


def render(page: ReferencePage) -> str:
    """Render a page as HTML, ending with a newline."""

    def address(link: Link) -> str:
        if link.url:
            return link.url
        fragment = f"#{make_anchor(link.heading)}" if link.heading else ""
        return f"{make_relative(page.path, name_file(link.page))}{fragment}"

    return _template().render(
        page=page,
        mark=MARK,
        address=address,
        anchor=make_anchor,
        kind=_kind,
    )


def _kind(part: Block | Span) -> str:
    """Return the name of a block or span type in the template."""
    return type(part).__name__


@cache
def _template() -> Template:
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    text = (files(__package__) / "page.html.jinja").read_text(encoding="utf-8")
    return environment.from_string(text)
