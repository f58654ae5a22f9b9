"""The pages of the reference that are made from code and data when the site is built."""

from __future__ import annotations

import posixpath
import re

from website.author_api import author_api_pages
from website.commands import commands_page
from website.compatibility import compatibility_page
from website.examples import example_pages
from website.field.page import field_page
from website.findings import findings_page
from website.provider_yaml import provider_yaml_page


def generated_pages() -> dict[str, str]:
    """Return each page by its path in the site."""
    return {
        "reference/provider-yaml.md": provider_yaml_page(),
        "reference/commands.md": commands_page(),
        "reference/findings.md": findings_page(),
        "reference/compatibility.md": compatibility_page(),
        "reference/field.md": field_page(),
        **author_api_pages(),
        **example_pages(),
    }


def link_titles(markdown: str) -> str:
    """Return ``docs/reference/README.md`` with links to the generated pages.

    Its rows only begin with their titles, since readers of the repository do not have the pages.
    """
    for path, text in generated_pages().items():
        title = text.partition("\n")[0].removeprefix("# ")
        row = re.compile(rf"^\| ({re.escape(title)})(?=:)", re.MULTILINE)
        markdown = row.sub(rf"| [\1]({posixpath.relpath(path, 'reference')})", markdown)
    return markdown
