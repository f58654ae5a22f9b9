"""Download the release files of providers from GitHub.

``python -m website.field.download FOLDER`` writes FOLDER/OWNER/NAME/VERSION/.  It uses the token in
``GITHUB_TOKEN``, if there is one, against GitHub's limit of requests.
"""

from __future__ import annotations

import json
import os
import re
import sys
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple

from capsmith.judge.release.release import is_release_asset
from website.field.model import (
    Origin,
    Provider,
    Record,
    choose_newest,
    create_release_folder,
    load_providers,
    write_record,
)

API = "https://api.github.com"
MAX_BYTES = 16 * 1024 * 1024
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\.ya?ml")
_TIMEOUT = 60.0


class Asset(NamedTuple):
    """A file of a release."""

    name: str
    url: str


class Published(NamedTuple):
    """A release on GitHub, with the files that clusterctl reads."""

    version: str
    date: str
    assets: tuple[Asset, ...]


def download_releases(folder: Path, providers: list[Provider], api: str = API) -> list[str]:
    """Write the newest release of each provider below ``folder``. Return what failed and why."""
    failed: list[str] = []
    for provider in providers:
        try:
            download_release(folder, provider, api)
        except (OSError, ValueError) as error:
            failed.append(f"{provider.repository}: {error}")
    return failed


def download_release(folder: Path, provider: Provider, api: str = API) -> None:
    """Write the files of a provider's newest release, and their record.

    Raises OSError if a request fails, and ValueError if there is no release with components.
    """
    listing = json.loads(_read(f"{api}/repos/{provider.repository}/releases?per_page=100"))
    published = choose_release(provider, listing)
    target = create_release_folder(folder, provider, published.version)
    for asset in published.assets:
        (target / asset.name).write_bytes(_read(asset.url))
    command = (
        f"gh release download {published.version} --repo {provider.repository}"
        f" --pattern '*.yaml' --dir {published.version}"
    )
    write_record(target, Record(published.date, Origin.ASSETS, (command,)))


def choose_release(provider: Provider, listing: Any) -> Published:
    """Return the greatest stable release of GitHub's answer.

    Raises ValueError if there is none, or if it has no components.
    """
    stable = {
        each["tag_name"]: each for each in listing if not (each["draft"] or each["prerelease"])
    }
    tag = choose_newest(provider, list(stable))
    if tag is None:
        raise ValueError("no release")
    release = stable[tag]
    assets = tuple(
        Asset(each["name"], each["browser_download_url"])
        for each in release["assets"]
        if _NAME.fullmatch(each["name"]) and is_release_asset(each["name"])
    )
    if not any("components" in asset.name for asset in assets):
        raise ValueError(f"{tag} has no components")
    return Published(tag, release["published_at"][:10], assets)


def _read(url: str) -> bytes:
    """Return what a server answers.

    Raises ValueError for an answer of more than ``MAX_BYTES``, or another scheme than HTTP.
    """
    if not url.startswith(("https://", "http://127.0.0.1:")):
        raise ValueError(f"{url} is not HTTPS")
    request = urllib.request.Request(url)
    token = os.environ.get("GITHUB_TOKEN")
    if token and url.startswith(f"{API}/"):
        request.add_header("Authorization", f"Bearer {token}")
    with urllib.request.urlopen(request, timeout=_TIMEOUT) as response:
        text: bytes = response.read(MAX_BYTES + 1)
    if len(text) > MAX_BYTES:
        raise ValueError(f"{url} has more than {MAX_BYTES} bytes")
    return text


if __name__ == "__main__":
    for line in download_releases(Path(sys.argv[1]), load_providers()):
        print(line, file=sys.stderr)
