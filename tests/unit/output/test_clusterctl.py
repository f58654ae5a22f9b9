"""Where clusterctl finds releases, and what the README says about them."""

from __future__ import annotations

import json

import pytest

from capsmith.commands.load import load_text
from capsmith.output.clusterctl import build_package_url, release_url
from tests.unit.provider.described import BASE, provider

_FILE = "infrastructure-components.yaml"
_GITLAB = "https://gitlab.example.com/api/v4/projects/infra%2Fcapi%2Facme/packages/generic/acme"


@pytest.mark.parametrize(
    ("repository", "url"),
    [
        ("https://github.com/acme/capi", f"https://github.com/acme/capi/releases/latest/{_FILE}"),
        ("https://gitlab.example.com/infra/capi/acme", f"{_GITLAB}/v0.1.0/{_FILE}"),
        (
            "https://git.example.com/acme/capi",
            f"/path/to/releases/infrastructure-acme/v0.1.0/{_FILE}",
        ),
    ],
)
def test_the_address_that_clusterctl_understands(repository: str, url: str) -> None:
    """CC-56 and CC-60: other addresses are refused as `Only GitHub and GitLab are supported`."""
    described = provider(repository=repository)
    assert release_url(described, described.components[0]) == url


def test_a_package_on_gitlab() -> None:
    assert (
        build_package_url(provider(repository="https://gitlab.example.com/infra/capi/acme"))
        == _GITLAB
    )


@pytest.mark.parametrize(
    ("host", "ids"), [("github.com", []), ("gitlab.com", []), ("git.example.com", ["CC-60"])]
)
def test_a_host_without_downloads_is_a_warning(host: str, ids: list[str]) -> None:
    repository = f"https://{host}/acme/cluster-api-provider-acme"
    loaded = load_text(json.dumps({**BASE, "repository": repository}), "provider.yaml")
    assert [finding.id for finding in loaded.findings] == ids
    assert loaded.provider is not None
