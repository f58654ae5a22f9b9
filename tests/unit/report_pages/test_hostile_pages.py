"""No string from a manifest becomes markup or script, in whatever place of a page it is."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from capsmith.findings import Location
from capsmith.report_pages import html, markdown
from capsmith.report_pages.model import (
    Entry,
    Excerpt,
    Fact,
    Group,
    Life,
    Log,
    Moment,
    ReportPage,
    Section,
    make_excerpt,
    make_folder_matrix,
    make_matrix,
)

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "</style></pre></details><img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)',
    "' autofocus onfocus='alert(1)",
    "javascript:alert(1)",
    'https://x/" onclick="alert(1)',
    "data:text/html,<script>alert(1)</script>",
    "<!-- -->",
    "--><script>alert(1)</script><!--",
    "]]><script>alert(1)</script>",
    "{{ 7 * 7 }}{% raw %}",
    "\x00\x1b[2J\x07\x9b",
    "a\u202eb\u2066c\u200bd\ufeff",
    "\ud800",
    "[text](javascript:alert(1))",
    "![image](https://example.com/x.png)",
    "<https://example.com>",
    "https://example.com www.example.com",
    "@owner and #1 and owner/name#2 and GH-3",
    "0123456789abcdef0123456789abcdef01234567",
    "`` ` ``` ````",
    "```\n# heading\n```",
    "a\n\n# heading\n\n- item\n\n| a | b |\n|---|---|",
    "a\r\n***\r\n**bold** _it_ ~~no~~",
    "| a | b |",
    "&lt;b&gt;&#64;owner",
    "[x]: https://example.com",
    "\\`<b>\\`",
    "x" * 100_000,
    "`" * 5_000,
    "\n" * 1_000,
)


def make(text: str) -> ReportPage:
    """Return a page with ``text`` in each place that can hold a string from elsewhere."""
    entry = Entry(
        text, text, Location(text, 2, 1), text, text, text, text, (text,), text, text, folder=text
    )
    lives = (Life(text, (Moment(-1.5, text, text), Moment(2.25, text))),)
    shown = entry._replace(
        excerpt=Excerpt(1, (text, *text.split("\n")[:5], text), 1),
        details=(text, *text.split("\n")[:5]),
        lives=lives,
        logs=(Log(text, (text, *text.split("\n")[:5])),),
    )
    group = Group(text, (entry, shown))
    facts = (Fact(text, text, lives),)
    return ReportPage(
        text,
        text,
        True,
        facts,
        text,
        (Section(text, (group,)),),
        (text,),
        ((text, text), (f"{text}/", text)),
        (text,),
        facts,
    )


class Markup(HTMLParser):
    """Collects elements with the names of their attributes, and all addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: set[tuple[str, tuple[str, ...]]] = set()
        self.addresses: set[str] = set()
        self.comments: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add((tag, tuple(name for name, _ in attrs)))
        self.addresses |= {value or "" for name, value in attrs if name in ("href", "src")}

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)


def parse(page: ReportPage) -> Markup:
    markup = Markup()
    markup.feed(html.render(page))
    markup.close()
    return markup


def flatten(tokens: list[Token]) -> list[Token]:
    return [each for token in tokens for each in (token, *flatten(token.children or []))]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_html_has_the_elements_of_a_harmless_page(text: str) -> None:
    harmless = parse(make("https://example.com/harmless"))
    found = parse(make(text))
    assert found.elements <= harmless.elements
    assert not found.comments
    assert all(address.startswith(("#finding-", "#cell-", "#core-")) for address in found.addresses)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_pages_hold_no_character_that_is_invisible(text: str) -> None:
    for page in (html.render(make(text)), markdown.render(make(text))):
        assert all(c.isprintable() or c == "\n" for c in page)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_markdown_has_the_markup_of_a_harmless_page(text: str) -> None:
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    rendered = markdown.render(make(text))
    allowed = {token.type for token in flatten(parser.parse(markdown.render(make("harmless"))))}
    tokens = flatten(parser.parse(rendered))
    assert {token.type for token in tokens} <= allowed | {"code_inline", "fence"}
    prose = "\n".join(token.content for token in tokens if token.type == "text")
    assert not re.search(r"@|#|://|www\.|GH-[0-9]|\b[0-9a-f]{7,40}\b", prose)


def test_policy_names_the_inline_style_and_script() -> None:
    page = html.render(make("harmless"))
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    for tag in ("style", "script"):
        (text,) = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        assert f"{tag}-src &#39;{html.make_digest(text)}&#39;" in policy
    assert policy.startswith("default-src &#39;none&#39;;")
    assert "unsafe" not in policy


def test_markdown_stays_below_the_limit_and_counts_what_is_left_out() -> None:
    entries = tuple(Entry(f"CC-{number}", "word " * 50) for number in range(2_000))
    page = replace(make("harmless"), sections=(Section("Breaks", (Group("", entries),)),))
    text = markdown.render(page)
    assert len(text) <= 65_536
    shown = len(re.findall(r"^- \*\*CC-", text, re.MULTILINE))
    assert f"**{2_000 - shown} of 2000 findings are left out" in text


def test_matrix_has_the_findings_of_a_rule_by_release() -> None:
    entries = (
        Entry("B", "", releases=("v1",)),
        Entry("A", "", releases=("v1", "v2")),
        Entry("B", ""),
    )
    sections = (Section("Breaks", (Group("", entries),)),)
    page = ReportPage("", "", True, sections=sections, releases=("v1", "v2"))
    assert make_matrix(page) == (("A", ((2,), (2,))), ("B", ((1, 3), (3,))))


def test_matrix_has_the_findings_of_a_rule_by_folder() -> None:
    entries = (
        Entry("B", "", folder="v1"),
        Entry("A", "", folder="v2"),
        Entry("B", ""),
        Entry("B", "", folder="v1"),
    )
    folders = (("v1", "Breaks."), ("v2", "Breaks."), ("v3", "Nothing breaks."))
    sections = (Section("Breaks", (Group("", entries),)),)
    page = ReportPage("", "", True, sections=sections, folders=folders)
    assert make_folder_matrix(page) == (("A", ((), (2,), ())), ("B", ((1, 4), (), ())))


def test_markdown_of_many_releases_stays_below_the_limit() -> None:
    names = [f"release-{number}-{'`|' * 400}" for number in range(200)]
    entries = tuple(Entry(f"CC-{each}", "word", folder=each) for each in names)
    page = replace(
        make("harmless"),
        sections=(Section("Breaks", (Group("", entries),)),),
        folders=tuple((each, each) for each in names),
    )
    text = markdown.render(page)
    assert len(text) <= 65_536
    assert "180 of 200 releases are left out" in text


def test_excerpt_ends_with_the_file() -> None:
    assert make_excerpt("a\nb\r\nc", 2) == Excerpt(1, ("a", "b", "c"), 2)
    assert make_excerpt("a\nb", 3) is None
    assert make_excerpt("a", 0) is None
