"""Repositories that earlier releases generated: unpack them, and find their authors' files."""

from __future__ import annotations

import tarfile
from pathlib import Path

import yaml

from capsmith.tree import digest
from tests.regenerate.conftest import Provider

ARCHIVES = Path(__file__).parent / "archives"
NAMES = tuple(sorted(path.name.partition(".tar")[0] for path in ARCHIVES.glob("*.tar.xz")))


def unpacked(name: str, folder: Path) -> Provider:
    """Return the repository of an archive in ``folder``; nothing is written outside of it."""
    folder.mkdir(parents=True)
    with tarfile.open(ARCHIVES / f"{name}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return Provider(folder)


def owners(provider: Provider) -> dict[str, str]:
    """Return the owner of each file that the old lock lists, by path."""
    lock = yaml.safe_load(provider.path(".capsmith/lock.yaml").read_text())
    return {
        path: "mine" if entry.get("mine") else entry["owner"]
        for path, entry in lock["files"].items()
    }


def author_files(provider: Provider) -> frozenset[str]:
    """Return edited scaffolds, files that were taken over, and those that capsmith never wrote."""
    known = owners(provider)
    entries = yaml.safe_load(provider.path(".capsmith/lock.yaml").read_text())["files"]
    return frozenset(
        path
        for path, (content, _) in provider.tree().items()
        if not path.startswith(".capsmith/")
        and (
            known.get(path, "mine") == "mine"
            or (known[path] == "scaffold" and entries[path]["digest"] != digest(content))
        )
    )
