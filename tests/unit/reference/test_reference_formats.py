"""Pages as Markdown and as HTML; writing them."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner

from capsmith.cli import main
from capsmith.commands.reference import render_reference
from capsmith.reference import html, markdown
from capsmith.reference.model import (
    MARK,
    Code,
    CodeBlock,
    Heading,
    Items,
    Link,
    Paragraph,
    ReferencePage,
    Strong,
    Table,
)

PAGE = ReferencePage(
    "v1/page",
    "A <title>",
    (
        Heading(2, "First part"),
        Paragraph(("a <b> & c_d", Code("x|y"), Strong("no"), Link("up", "index"))),
        Items((("one",), (Link("out", url="https://example.com/?a=1&b=2"),))),
        Table(
            "All rows", ("Name", "Value"), (((Code("a|b"),), (Link("x", "v1/other", "Its Part"),)),)
        ),
        CodeBlock("a: <b>\n"),
    ),
)
VOID = {"meta", "wbr"}


class Outline(HTMLParser):
    """Collect the elements of a page; a closing tag must match the last one that is open."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def of(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.seen if tag == name]


def outline(text: str) -> Outline:
    parser = Outline()
    parser.feed(text)
    parser.close()
    assert parser.open == []
    return parser


def test_markdown() -> None:
    assert markdown.render(PAGE) == (
        f"{MARK}\n\n# A \\<title>\n\n## First part\n\n"
        "a \\<b> & c\\_d`x|y`**no**[up](../README.md)\n\n"
        "- one\n- [out](https://example.com/?a=1&b=2)\n\n"
        "All rows:\n\n| Name | Value |\n|---|---|\n"
        "| `a\\|b` | [x](../v1/other.md#its-part) |\n\n"
        "```yaml\na: <b>\n```\n"
    )


def test_html_escapes_texts_and_links_pages() -> None:
    text = html.render(PAGE)
    assert text.startswith('<!doctype html>\n<html lang="en">\n')
    assert MARK in text[:200]
    assert "<title>A &lt;title&gt;</title>" in text
    expected = '<p>a &lt;b&gt; &amp; c_d<code>x|y</code><strong>no</strong><a href="../index.html">'
    assert expected in text
    assert '<a href="../v1/other.html#its-part">x</a>' in text
    assert '<a href="https://example.com/?a=1&amp;b=2">out</a>' in text
    assert '<h2 id="first-part">First part</h2>' in text
    assert '<th scope="row"><code>a|b</code></th>' in text
    assert "<pre><code>a: &lt;b&gt;\n</code></pre>" in text


def test_html_is_well_formed_accessible_and_self_contained() -> None:
    pages = render_reference("html")
    for name, text in pages.items():
        page = outline(text)
        assert page.of("html") == [{"lang": "en"}]
        assert len(page.of("h1")) == len(page.of("main")) == 1
        assert len(page.of("caption")) == len(page.of("table"))
        assert all(cell["scope"] in ("col", "row") for cell in page.of("th"))
        assert not {"script", "link", "img", "iframe"} & {tag for tag, _ in page.seen}
        assert not re.search(r"url\(|@import|\bon\w+=", text.partition("</style>")[0])
        ids = [attributes["id"] for _, attributes in page.seen if "id" in attributes]
        assert len(ids) == len(set(ids)), name
        levels = [int(tag[1]) for tag, _ in page.seen if re.fullmatch(r"h[1-6]", tag)]
        assert all(b <= a + 1 for a, b in pairwise(levels)), name
        for each in page.of("a"):
            path, _, fragment = str(each["href"]).partition("#")
            if not path.startswith("https://"):
                target = (Path("/") / name).parent.joinpath(path).resolve()
                linked = pages[target.relative_to("/").as_posix()]
                assert not fragment or f'id="{fragment}"' in linked, (name, each)


@pytest.mark.parametrize("format_", ["markdown", "html"])
def test_pages_do_not_depend_on_the_run(format_: str) -> None:
    assert render_reference(format_) == render_reference(format_)


def test_the_command_writes_and_replaces_its_pages(tmp_path: Path) -> None:
    folder = tmp_path / "pages"
    run = CliRunner().invoke(main, ["reference", "-o", str(folder), "--format", "html"])
    assert run.exit_code == 0, run.output
    files = {file.relative_to(folder).as_posix() for file in folder.rglob("*.html")}
    assert files == set(render_reference("html"))
    assert f"{len(files)} pages are in " in run.output
    index = folder / "index.html"
    whole = index.read_text()
    index.write_text(whole.replace("</main>", ""))
    assert (
        CliRunner().invoke(main, ["reference", "-o", str(folder), "--format", "html"]).exit_code
        == 0
    )
    assert index.read_text() == whole


def test_the_command_keeps_other_files(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("mine\n")
    run = CliRunner().invoke(main, ["reference", "-o", str(tmp_path)])
    assert run.exit_code == 1
    assert "is not a page of the reference" in run.output
    assert readme.read_text() == "mine\n"
    assert list(tmp_path.iterdir()) == [readme]
