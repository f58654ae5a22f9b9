"""Releases of core: the contract versions and API versions that each uses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from capsmith.contract.compatibility import Project, Supported
from capsmith.manifests.crds import Crd

LABEL = "cluster.x-k8s.io/"
_RELEASE = re.compile(r"v?([0-9]{1,3})\.([0-9]{1,3})(?:\.[0-9]+.*)?")
_KUBERNETES_VERSION = re.compile(r"v([0-9]{1,63})(?:(alpha|beta)([0-9]{1,63}))?")
_LARGEST = 2**63 - 1
_KEPT_RELEASES = 256
_STAGES = {"alpha": 0, "beta": 1, None: 2}


class Core(NamedTuple):
    """A minor release of Cluster API core and clusterctl, such as ``v1.14``."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"v{self.major}.{self.minor}"

    @property
    def contracts(self) -> tuple[str, ...]:
        """Return the contract versions that the release supports, the preferred one first."""
        return ("v1beta2", "v1beta1") if self >= _WITH_V1BETA2 else ("v1beta1",)


_WITH_V1BETA2 = Core(1, 11)


class Choice(NamedTuple):
    """The API version that core uses for a kind, and the contract version that determines it."""

    contract: str
    version: str
    """API version that core uses. It is empty if there is none, in which case core fails."""


class Targets(NamedTuple):
    """The releases of core that the rules cover, oldest first."""

    known: tuple[Core, ...]
    executed: frozenset[Core]
    """Releases that capsmith's tests run against. For others, rules rely on core's source only."""

    @property
    def from_source(self) -> tuple[Core, ...]:
        """Return the releases that no test runs against, oldest first.

        Rules for these releases are based only on reading core's source.
        """
        return tuple(core for core in self.known if core not in self.executed)


def list_targets(core: Project) -> Targets:
    """Return the releases of core in the compatibility table."""

    def minor(supported: Supported) -> Core:
        return Core(*supported.order[:2])

    return Targets(
        tuple(minor(each) for each in core.releases),
        frozenset(minor(each) for each in core.executed),
    )


@lru_cache(_KEPT_RELEASES)
def parse_core(text: str) -> Core | None:
    """Parse a release such as ``v1.13`` or ``v1.13.2``; return None for any other form."""
    match = _RELEASE.fullmatch(text)
    return Core(int(match[1]), int(match[2])) if match else None


def choose(crd: Crd, core: Core) -> Choice:
    """Return the contract version and API version that core chooses from the CRD's labels (GEN-03).

    The API version is empty if the CRD has no label for a contract version that the release
    supports.
    """
    for contract in core.contracts:
        # The first contract with a label decides, even if none of the versions it names is served.
        versions = crd.labelled(LABEL + contract)
        if versions:
            return Choice(contract, max(versions, key=rank_kubernetes_version))
    return Choice(core.contracts[0], "")


def rank_kubernetes_version(version: str) -> tuple[int, int, int, int, tuple[int, ...]]:
    """Return a sort key that orders API versions as Kubernetes does.

    For example: v2, v1, v1beta2, v1beta1, then other names from a to z.
    """
    # This is apimachinery's order.  Core uses the highest version, so any other order would lead to
    # judging the wrong schema.
    match = _KUBERNETES_VERSION.fullmatch(version)
    major, minor = (int(match[1]), int(match[3] or 0)) if match else (0, 0)
    if match is None or max(major, minor) > _LARGEST:
        # The end of a name is higher than any character, as `a` comes before `ab`.
        return 0, 0, 0, 0, (*(-ord(character) for character in version), 1)
    return 1, _STAGES[match[2]], major, minor, ()


def filter_installable(cores: Iterable[Core], contract: str) -> tuple[Core, ...]:
    """Return the releases whose clusterctl installs providers for ``contract``; all for ``""``."""
    return tuple(core for core in cores if not contract or contract in core.contracts)


def format_source_note(cores: Iterable[Core]) -> str:
    """Return a note such as ``(v1.11, v1.12 as read from source)``, with a leading space.

    Empty if ``cores`` is empty.
    """
    names = ", ".join(map(str, cores))
    return f" ({names} as read from source)" if names else ""


def format_span(cores: Sequence[Core]) -> str:
    """Return releases of core for display, such as ``v1.10`` or ``v1.11 to v1.15``."""
    ordered = sorted(cores)
    if not ordered:
        return ""
    if len(ordered) == 1:
        return str(ordered[0])
    return f"{ordered[0]} to {ordered[-1]}"
