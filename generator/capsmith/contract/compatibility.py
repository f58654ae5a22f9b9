"""The other projects' releases that capsmith supports (``schemas/compatibility.yaml``).

This is the only source of release numbers for tools, defaults, samples, tests and documentation.
"""

from __future__ import annotations

from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, NamedTuple

from capsmith.contract.model import ReleaseTesting
from capsmith.contract.reading import load, make_error, validate

if TYPE_CHECKING:
    from capsmith.contract.files import SupportedEntry

FILE = "compatibility.yaml"


class Supported(NamedTuple):
    """A release that capsmith supports, or a whole minor release if no test runs against it."""

    release: str
    """The release or minor release, such as ``v1.14.2``, ``v1.15`` or ``3.13``."""
    run: ReleaseTesting
    kubeadm: bool
    """Whether tests run core's kubeadm providers from this release."""
    note: str

    @property
    def series(self) -> str:
        """Return the minor release, such as ``v1.14``."""
        return ".".join(self.release.split(".")[:2])

    @property
    def order(self) -> tuple[int, ...]:
        """Return the release's version as integers, for sorting."""
        return release_order(self.release)


def release_order(release: str) -> tuple[int, ...]:
    """Return a sort key that puts ``v1.14`` before ``v1.14.2``, and both before ``v1.15``."""
    return tuple(int(part) for part in release.removeprefix("v").split("."))


class Project(NamedTuple):
    """A project, and those of its releases that capsmith supports, oldest first."""

    releases: tuple[Supported, ...]

    @property
    def default(self) -> Supported:
        """Return the newest release that all tests run against for every change."""
        return next(each for each in reversed(self.releases) if each.run is ReleaseTesting.CI)

    @property
    def executed(self) -> tuple[Supported, ...]:
        """Return the releases that at least some tests run against, oldest first."""
        return tuple(each for each in self.releases if each.run is not ReleaseTesting.SOURCE)

    def series(self, name: str) -> Supported:
        """Return the supported release whose minor release is ``name``.

        Raises KeyError if that minor release is not supported.
        """
        for each in self.releases:
            if each.series == name:
                return each
        raise KeyError(name)


class Compatibility(NamedTuple):
    """The releases that capsmith supports of each project it works with, keyed by project."""

    core: Project
    """Releases of Cluster API core, which are also clusterctl's releases."""
    kubernetes: Project
    cert_manager: Project
    python: Project


def load_compatibility(reader: Traversable) -> Compatibility:
    """Load the table of releases from the schemas folder ``reader``.

    Raises UnreadableInput for invalid data, for releases out of order, and if CI does not test
    against any release of core, Kubernetes or Python.
    """
    from capsmith.contract.files import CompatibilityFile  # builds pydantic models

    file = reader / FILE
    content = validate(CompatibilityFile, load(file), str(file))
    projects = {
        name: _project(name, entries, str(file))
        for name, entries in (
            ("core", content.core),
            ("kubernetes", content.kubernetes),
            ("python", content.python),
        )
    }
    for name, project in projects.items():
        if not any(each.run is ReleaseTesting.CI for each in project.releases):
            raise make_error(str(file), f"{name} has no release with `run: ci`")
    cert_manager = _project("certManager", content.cert_manager, str(file))
    return Compatibility(cert_manager=cert_manager, **projects)


def _project(name: str, entries: list[SupportedEntry], file: str) -> Project:
    releases = tuple(
        Supported(entry.release, entry.run, entry.kubeadm, entry.note) for entry in entries
    )
    if list(releases) != sorted(releases, key=lambda each: each.order):
        raise make_error(file, f"the releases of {name} are not in order, the oldest first")
    if len({each.series for each in releases}) != len(releases):
        raise make_error(file, f"{name} has two releases of one series")
    for each in releases:
        if (
            each.release == each.series
            and each.run is not ReleaseTesting.SOURCE
            and name != "python"
        ):
            raise make_error(file, f"{name} {each.release} is run, so it must name a patch release")
    return Project(releases)
