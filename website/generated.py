"""The pages of the reference that are made from code and data when the site is built."""

from __future__ import annotations

from website.commands import commands_page
from website.findings import findings_page
from website.provider_yaml import provider_yaml_page


def generated_pages() -> dict[str, str]:
    """Return each page by its path in the site."""
    return {
        "reference/provider-yaml.md": provider_yaml_page(),
        "reference/commands.md": commands_page(),
        "reference/findings.md": findings_page(),
    }
