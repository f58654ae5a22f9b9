"""Build the first part of provider.yaml: name, contract versions, API versions, releases and
groups.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from capsmith.contract.model import Contract
from capsmith.importing.source import IDENTITY, PROVIDER_LABEL, RESOURCE, SourceCrd
from capsmith.manifests.crds import CrdVersion
from capsmith.manifests.kustomize import KUSTOMIZATION_FILES
from capsmith.manifests.parse import Manifest, list_of, mapping_of, text_of
from capsmith.provider.described_kinds import ROLES_OF_MACHINES
from capsmith.provider.sections import SECTION_TYPES
from capsmith.provider.versions import rank_api_version, rank_series
from capsmith.safetext import DnsLabel, SeriesName, VersionName

_AROUND_NAME = re.compile(r"^cluster-api-([a-z-]+-)??provider-|-system$")
"""What precedes and follows a provider's name in the usual names of its namespace."""


_INFRASTRUCTURE = "infrastructure"


class Version(NamedTuple):
    """One of the provider's API versions, with the settings that most of its kinds use."""

    name: str
    served: bool
    storage: bool
    contract: str
    deprecated: bool = False
    warning: str = ""
    """Deprecation warning; empty for the API server's default warning."""


class Outline(NamedTuple):
    """The first part of provider.yaml: settings for all kinds, unless a kind overrides them."""

    name: str
    contracts: tuple[str, ...]
    versions: tuple[Version, ...]
    releases: Mapping[str, str]
    groups: Mapping[str, str]
    """API groups by section, for sections whose group is not the default."""
    corrected: Mapping[str, tuple[str, str]] = {}
    """Contract versions in metadata.yaml and in ``releases``, by release series, where they differ.

    The newest series has the newest contract that the CRDs follow (GEN-09).
    """
    components: Mapping[str, Sequence[str]] = {}
    """Sections that share a component, keyed by the section that determines the component's
    type."""
    has_machines: bool = True
    """Whether Machines run on the infrastructure, if there is any."""

    def head(self, repository: str) -> dict[str, Any]:
        """Return the entries in provider.yaml that come before its sections."""
        found: dict[str, Any] = {
            "capsmith": 1,
            "name": self.name,
            "repository": repository,
            "contracts": list(self.contracts),
            "apiVersions": self._versions(),
            "releases": dict(self.releases),
        }
        if self.groups:
            found["groups"] = dict(self.groups)
        if self.components:
            found["components"] = {key: list(names) for key, names in self.components.items()}
        if not self.has_machines:
            found["machines"] = False
        return found

    def _versions(self) -> list[Any]:
        newest = max((each.name for each in self.versions), key=rank_api_version, default="")
        usual = all(each.storage == (each.name == newest) for each in self.versions)
        entries: list[Any] = []
        for each in self.versions:
            entry: dict[str, Any] = {"name": each.name}
            if not each.served:
                entry["served"] = False
            if each.storage and not usual:
                entry["storage"] = True
            if len(self.contracts) > 1:
                entry["contract"] = each.contract
            if each.deprecated:
                entry["deprecated"] = True
            if each.warning:
                entry["deprecationWarning"] = each.warning
            entries.append(entry if len(entry) > 1 else each.name)
        return entries


def find_provider_name(sources: Iterable[SourceCrd]) -> str:
    """Return the provider's name from its CRDs' label; empty if there is none.

    The label's value is the provider type, a hyphen and the name.
    """
    # The longest type comes first, because one type may be a prefix of another.
    types = sorted((each.type for each in SECTION_TYPES.values()), key=len, reverse=True)
    for source in sources:
        label = source.crd.labels.get(PROVIDER_LABEL)
        for type_ in types:
            if isinstance(label, str) and label.startswith(f"{type_}-"):
                return label.removeprefix(f"{type_}-")
    return ""


def guess_provider_name(manifests: Iterable[Manifest]) -> str:
    """Guess the provider's name from its components' namespace; empty if none is usable.

    ``manifests`` are unprocessed source files: the namespace is the name of a Namespace or the
    ``namespace`` in a kustomization, such as ``cluster-api-provider-acme-system``.
    """
    for manifest in manifests:
        is_namespace = manifest.kind == "Namespace"
        namespace = manifest.name if is_namespace else text_of(manifest.document, "namespace")
        if is_namespace or Path(manifest.file).name in KUSTOMIZATION_FILES:
            name = _AROUND_NAME.sub("", namespace)
            # kustomize adds the prefix of all objects to a Namespace with this name.
            if name != "system" and DnsLabel.form.fullmatch(name):
                return name
    return ""


def decide_outline(
    name: str,
    sources: Sequence[SourceCrd],
    metadata: Sequence[Manifest],
    contracts: Mapping[str, Contract],
) -> Outline:
    """Return the first part of provider.yaml, with the settings that most kinds share.

    Kinds with a contract role take precedence over all others, because clusterctl and core read
    only those kinds.  Kinds with other settings get keys of their own.  ``metadata`` holds
    clusterctl's Metadata objects.
    """
    series = _releases(metadata, contracts)
    followed = _contracts(sources, series, contracts)
    versions = _versions(sources, followed, contracts)
    # A label may list one version under two contracts, of which it follows one.
    used = {each.contract for each in versions if each.served}
    followed = tuple(each for each in followed if each in used) or followed
    # Without metadata, no earlier releases are known, so a first series is proposed.
    if not series:
        series = {"v0.1": max(followed)}
    newest = max(series, key=rank_series)
    corrected = {}
    if series[newest] != max(followed):
        corrected = {newest: (series[newest], max(followed))}
        series = {**series, newest: max(followed)}
    return Outline(
        name,
        followed,
        versions,
        series,
        _groups(sources),
        corrected,
        _components(sources),
        _has_machines(sources),
    )


def _has_machines(sources: Sequence[SourceCrd]) -> bool:
    """Return whether there is a kind that needs machines, or no kind of infrastructure at all."""
    roles = {source.role for source in sources}
    return "InfraCluster" not in roles or not roles.isdisjoint(ROLES_OF_MACHINES)


def _contracts(
    sources: Sequence[SourceCrd], series: Mapping[str, str], contracts: Mapping[str, Contract]
) -> tuple[str, ...]:
    """Return the contracts that any served version follows, newest first.

    The newest is left out if only some of the kinds follow it: a manager could not run the others.
    """
    by_kind = [
        {_contract(source, each, contracts) for each in source.crd.versions if each.served} - {""}
        for source in sources
    ]
    served = set[str]().union(*by_kind)
    own = [
        found
        for source, found in zip(sources, by_kind, strict=True)
        if source.role not in (RESOURCE, IDENTITY)
    ]
    if len(served) > 1 and any(found and max(served) not in found for found in own):
        served -= {max(served)}
    if not served and series:
        served = {series[max(series, key=rank_series)]}
    elif not served:
        served = {_by_shape(sources, contracts)}
    return tuple(sorted(served, reverse=True))


def _by_shape(sources: Sequence[SourceCrd], contracts: Mapping[str, Contract]) -> str:
    """Return the contract of unlabelled CRDs: only the newest contract has ``initialization``."""
    fields = {
        field
        for source in sources
        for version in source.crd.versions
        for field in mapping_of(version.schema, "properties", "status", "properties")
    }
    is_old = "ready" in fields and "initialization" not in fields
    return min(contracts) if is_old else max(contracts)


def _contract(source: SourceCrd, version: CrdVersion, contracts: Mapping[str, Contract]) -> str:
    """Return the contract that the CRD's labels give a version, or '' if no label names it."""
    labelled = [
        each.version
        for each in contracts.values()
        if version.name in source.crd.labelled(each.label)
    ]
    if len(labelled) < 2:
        return labelled[0] if labelled else ""
    status = mapping_of(version.schema, "properties", "status", "properties")
    return max(labelled) if "initialization" in status else min(labelled)


def _versions(
    sources: Sequence[SourceCrd], followed: Sequence[str], contracts: Mapping[str, Contract]
) -> tuple[Version, ...]:
    served: Counter[str] = Counter()
    stored: Counter[str] = Counter()
    contract: dict[str, Counter[str]] = {}
    deprecated: dict[str, Counter[str | None]] = {}
    for source in sources:
        for version in source.crd.versions:
            if not VersionName.form.fullmatch(version.name):
                continue
            weight = len(sources) if source.role != RESOURCE else 1
            # The majority decides: a version that most kinds serve is served, and all other kinds
            # get their own entries.
            served[version.name] += weight if version.served else -weight
            stored[version.name] += weight * version.storage
            warning = _deprecation(source, version.name)
            deprecated.setdefault(version.name, Counter())[warning] += weight
            found = {_contract(source, version, contracts)} & set(followed)
            contract.setdefault(version.name, Counter()).update(found)
    storage = max(stored, key=lambda name: (stored[name], rank_api_version(name)), default="")
    return tuple(
        Version(
            name,
            served[name] >= 0 or name == storage,
            name == storage,
            _most(contract[name], min(followed)),
            *_usual_deprecation(deprecated[name]),
        )
        for name in sorted(served, key=rank_api_version)
    )


def _deprecation(source: SourceCrd, name: str) -> str | None:
    """Return a version's deprecation warning.

    An empty string means the API server's text; None means that the version is not deprecated.
    """
    for version in list_of(source.crd.manifest.document, "spec", "versions"):
        if text_of(version, "name") == name and mapping_of(version).get("deprecated") is True:
            return text_of(version, "deprecationWarning")
    return None


def _usual_deprecation(counted: Counter[str | None]) -> tuple[bool, str]:
    warning = max(sorted(counted, key=str), key=lambda each: counted[each])
    return warning is not None, warning or ""


def _most(counted: Counter[str], otherwise: str) -> str:
    # Sorted first, so that ties are broken in the same way on every run.
    best = max(sorted(counted, reverse=True), key=lambda each: counted[each], default="")
    return best or otherwise


def _releases(metadata: Sequence[Manifest], contracts: Mapping[str, Contract]) -> dict[str, str]:
    found: dict[str, str] = {}
    for manifest in metadata:
        for entry in list_of(manifest.document, "releaseSeries"):
            major, minor = (mapping_of(entry).get(key) for key in ("major", "minor"))
            series, contract = f"v{major}.{minor}", text_of(entry, "contract")
            if SeriesName.form.fullmatch(series) and contract in contracts:
                found[series] = contract
    return dict(sorted(found.items(), key=lambda item: rank_series(item[0])))


def _groups(sources: Sequence[SourceCrd]) -> dict[str, str]:
    counted: dict[str, Counter[str]] = {}
    for source in sources:
        weight = len(sources) if source.role != RESOURCE else 1
        counted.setdefault(source.section, Counter())[source.crd.group] += weight
    found: dict[str, str] = {}
    for section, type_ in SECTION_TYPES.items():
        groups = counted.get(section)
        if not groups:
            continue
        group = max(sorted(groups), key=lambda each: (groups[each], each == type_.group))
        if group != type_.group:
            found[section] = group
    return found


def _components(sources: Sequence[SourceCrd]) -> dict[str, list[str]]:
    """Return the sections that share an API group or identities with the infrastructure, with it.

    Managed control planes and their clusters are often kinds of one group, which one release ships.
    One manager serves the identities and all kinds that refer to them.
    """
    groups: dict[str, set[str]] = {}
    for source in sources:
        if source.role != RESOURCE:
            groups.setdefault(source.section, set()).add(source.crd.group)
    shared = groups.get(_INFRASTRUCTURE, set())
    referring = {source.section for source in sources if source.refers_to_identity}
    if not any(source.role == IDENTITY for source in sources):
        referring = set()
    combined = [
        each for each in SECTION_TYPES if groups.get(each, set()) & shared or each in referring
    ]
    return {_INFRASTRUCTURE: combined} if len(combined) > 1 else {}
