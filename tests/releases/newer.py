"""Find releases newer than those in the table, by the tags of the projects' repositories."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from capsmith.contract.compatibility import Compatibility, Project
from capsmith.contract.model import ReleaseTesting

REPOSITORIES: Mapping[str, str] = MappingProxyType(
    {
        "core": "https://github.com/kubernetes-sigs/cluster-api",
        "kubernetes": "https://github.com/kubernetes/kubernetes",
        "cert_manager": "https://github.com/cert-manager/cert-manager",
        "python": "https://github.com/python/cpython",
    }
)
_STABLE = re.compile(r"refs/tags/(v[0-9]+\.[0-9]+\.[0-9]+)$", re.MULTILINE)

Version = tuple[int, ...]


def find_newer(
    table: Compatibility, repositories: Mapping[str, str] = REPOSITORIES
) -> Iterator[str]:
    """Yield a line for each newer patch of a series that is run, and for each newer series.

    Raises subprocess.CalledProcessError if git cannot list the tags of a repository.
    """
    for name, repository in repositories.items():
        yield from _newer_of(name, getattr(table, name), _released(repository))


def _newer_of(name: str, project: Project, released: list[Version]) -> Iterator[str]:
    newest = {version[:2]: version for version in sorted(released)}
    known = {each.order[:2]: each for each in project.releases}
    for series, version in newest.items():
        if series in known:
            each = known[series]
            has_patch = len(each.order) > 2
            if each.run is not ReleaseTesting.SOURCE and has_patch and version > each.order:
                yield f"{name}: {_text(version)} after {each.release}"
            elif (
                each.run is ReleaseTesting.SOURCE and each is project.releases[-1] and not has_patch
            ):
                yield f"{name}: {_text(version)} is released; {each.release} is read from source"
        elif series > max(known):
            yield f"{name}: {_text(version)} is a new series"


def _released(repository: str) -> list[Version]:
    """Return the versions of the tags without pre-releases."""
    listing = subprocess.run(
        ["git", "ls-remote", "--tags", "--refs", repository],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return [_version(tag) for tag in _STABLE.findall(listing)]


def _version(tag: str) -> Version:
    return tuple(int(part) for part in tag.removeprefix("v").split("."))


def _text(version: Version) -> str:
    return "v" + ".".join(map(str, version))
