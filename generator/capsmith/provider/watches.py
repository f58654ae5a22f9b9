"""Further kinds whose changes concern a kind of the provider."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from capsmith.provider.naming import pluralise
from capsmith.safetext import DnsLabel, KindName, VersionName

if TYPE_CHECKING:
    from capsmith.provider_yaml.sections import KindSpec


class Watch(NamedTuple):
    """A further kind whose changes enqueue objects of the kind that has this."""

    group: str
    """Empty for the core group."""
    version: VersionName
    kind: KindName
    plural: DnsLabel
    namespaced: bool
    path: tuple[str, ...] = ()
    """Field that names the changed object: ``spec``, ``sshKeyRef``, ``name``."""
    label: str = ""
    """Label of the changed object with the name of the one to enqueue."""


def watches_of(described: KindSpec) -> tuple[Watch, ...]:
    """Return the watches that a kind declares, in the author's order."""
    return tuple(
        Watch(
            group=each.api_version.rpartition("/")[0],
            version=VersionName(each.api_version.rpartition("/")[2]),
            kind=KindName(each.kind),
            plural=DnsLabel(each.resource or pluralise(each.kind.lower())),
            namespaced=each.scope != "Cluster",
            path=tuple(each.path.split(".")) if each.path else (),
            label=each.label or "",
        )
        for each in described.watches or ()
    )
