"""Render a report as one HTML file that loads nothing from the network. Pure: data in, text out.

The content security policy lists the digests of the style sheet and the script in the file, so that
a browser runs nothing else, even if a string from a manifest ended up as markup.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files

from jinja2 import Environment, StrictUndefined, Template

from capsmith.printable import make_printable
from capsmith.report_pages.model import ReportPage, make_axis, make_folder_matrix, make_matrix
from capsmith.shorten import shorten, shorten_line

_LINK = re.compile(r"https://[^\s\"'<>\\]+")


def render(page: ReportPage) -> str:
    """Return the report as HTML without a final newline."""
    style, script = _read("page.css"), _read("page.js")
    return _template().render(
        page=page,
        entries=page.entries,
        matrix=make_matrix(page),
        make_axis=make_axis,
        folder_matrix=make_folder_matrix(page),
        folder_columns=tuple(folder for folder, _ in page.folders),
        verdicts=tuple(verdict for _, verdict in page.folders),
        style=style,
        script=script,
        policy="; ".join(
            (
                "default-src 'none'",
                f"style-src '{make_digest(style)}'",
                f"script-src '{make_digest(script)}'",
                "base-uri 'none'",
                "form-action 'none'",
            )
        ),
    )


def make_digest(text: str) -> str:
    """Return an inline script's or style's SHA-256 digest for a content security policy."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _show(text: object) -> str:
    return shorten(make_printable(str(text)))


def _show_line(text: str) -> str:
    return shorten_line(make_printable(text))


def _is_link(text: str) -> bool:
    """Return whether a browser may follow ``text``: only HTTPS, and never ``javascript:``."""
    return _LINK.fullmatch(text) is not None


def _read(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


@cache
def _template() -> Template:
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"show": _show, "show_line": _show_line}
    environment.tests["link"] = _is_link
    return environment.from_string(_read("page.html.jinja"))
