"""Links from pages of the site to other files of the repository."""

from __future__ import annotations

import pytest

from website.sources import page_of, pages_for, rewrite


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
