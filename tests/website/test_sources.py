"""Links from pages of the site to other files of the repository."""

from __future__ import annotations

import posixpath
import re

import pytest

from website.generated import generated_pages
from website.sources import PROJECT, ROOT, page_of, pages_for, rewrite

_CODE = re.compile(r"^( *)(```+).*?^\1\2 *$|(`+).+?\3", re.MULTILINE | re.DOTALL)
_RELATIVE = re.compile(r"(?<!\\)\]\((?!https?:|mailto:|#)(?P<path>[^)\s#]+)(?:#[^)\s]*)?\)")


@pytest.mark.parametrize(
    ("page", "link", "expected"),
    [
        ("how-to/verify.md", "[x](../author-api.md#ids)", "[x](../author-api.md#ids)"),
        ("how-to/a.md", "[x](../../dev)", "[x](../repository/dev.md)"),
        ("how-to/a.md", "[x](../../README.md#update)", "[x](../repository/README.md#update)"),
        ("a.md", "[x](../schemas/kinds)", "[x](repository/schemas/kinds/index.md)"),
        ("a.md", "[x](../examples/ec2)", "[x](repository/examples/ec2/README.md)"),
        ("a.md", "[x](../.gitignore)", "[x](repository/gitignore.md)"),
        ("a.md", "[x](../dev#L3)", "[x](repository/dev.md)"),
        ("a.md", "[`x`](../dev)", "[`x`](repository/dev.md)"),
        ("a.md", "[x](traceability/README.md)", "x"),
        ("a.md", "[x](../no-such-file)", "[x](../no-such-file)"),
        ("a.md", "[x](https://example.com/a)", "[x](https://example.com/a)"),
        ("a.md", "`[a](../dev)` [x](../dev)", "`[a](../dev)` [x](repository/dev.md)"),
        ("a.md", "`a\nb` [`x`](../dev) `c`", "`a\nb` [`x`](repository/dev.md) `c`"),
        ("a.md", "one `\n\n[x](../dev) `", "one `\n\n[x](repository/dev.md) `"),
        ("a.md", "[a\nb](../dev)", "[a\nb](repository/dev.md)"),
        ("a.md", "[a\n\nb](../dev)", "[a\n\nb](../dev)"),
        ("a.md", "```\n[x](../dev)\n```", "```\n[x](../dev)\n```"),
        ("repository/README.md", "[x](docs/style.md)", "[x](../style.md)"),
        ("repository/README.md", "![x](docs/pictures/a.svg)", "![x](../pictures/a.svg)"),
        ("repository/README.md", "[x](LICENSE)", "[x](LICENSE.md)"),
    ],
)
def test_links(page: str, link: str, expected: str) -> None:
    assert rewrite(link, page, is_page=lambda path: True) == expected


def test_a_link_to_what_is_no_page_stays_for_the_build_to_report() -> None:
    assert rewrite("[x](no.md)", "a.md", is_page=lambda path: False) == "[x](no.md)"


def test_pages_follow_links_of_pages() -> None:
    pages = pages_for([("a.md", "[x](../examples/ec2/README.md)")])

    assert list(pages) == [
        "repository/examples/ec2/README.md",
        "repository/examples/ec2/provider.yaml.md",
    ]
    assert "# A provider for Amazon EC2" in pages["repository/examples/ec2/README.md"]
    assert "````yaml\n" in pages["repository/examples/ec2/provider.yaml.md"]


@pytest.mark.parametrize("path", ["../elsewhere", "no-such-file"])
def test_there_is_no_page_of_what_is_not_in_the_repository(path: str) -> None:
    assert page_of(path) is None


def test_relative_links_of_all_pages_lead_to_files_of_the_site() -> None:
    written = {
        page.relative_to(ROOT / "docs").as_posix(): page.read_text(encoding="utf-8")
        for page in sorted((ROOT / "docs").rglob("*.md"))
        if "traceability" not in page.parts
    }
    pages = {**written, **generated_pages()}
    pages |= pages_for([*pages.items(), ("index.md", PROJECT)])
    files = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.*")}
    files |= pages.keys()

    broken = [
        f"{page}: {match['path']}"
        for page, text in pages.items()
        for match in _RELATIVE.finditer(_CODE.sub("", rewrite(text, page, files.__contains__)))
        if posixpath.normpath(posixpath.join(posixpath.dirname(page), match["path"])) not in files
    ]

    assert broken == []
