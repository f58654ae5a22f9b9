"""A description that was found to be valid -> :class:`Provider`.

Makes no findings: a name that does not fit raises ValueError, and that is a bug of the checks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from capsmith.contract.model import Contract
from capsmith.provider import derive
from capsmith.provider.model import (
    ApiVersion,
    Component,
    Credentials,
    PolicyRule,
    Provider,
    Release,
    Resource,
    Role,
)
from capsmith.provider.resources import identity, pair
from capsmith.safetext import (
    DnsLabel,
    DnsSubdomain,
    Identifier,
    ImageName,
    KindName,
    LicenceId,
    RelativePath,
    RepositoryUrl,
    SeriesName,
    VersionName,
)

if TYPE_CHECKING:
    from capsmith.spec.model import ProviderSpec

_TYPE = "infrastructure"
_DESCRIPTION = "Cluster API infrastructure provider for {title}."


def build_provider(spec: ProviderSpec, known: Mapping[str, Contract]) -> Provider:
    """The provider, complete.  Raises ValueError for a description that was not checked."""
    title = spec.title or derive.default_title(spec.name)
    contracts = tuple(known[version] for version in sorted(spec.contracts, reverse=True))
    return Provider(
        name=DnsLabel(spec.name),
        title=title,
        description=(spec.description or _DESCRIPTION.format(title=title)).strip(),
        repository=RepositoryUrl(spec.repository),
        distribution=DnsLabel(derive.distribution(spec)),
        package=Identifier(derive.package(spec)),
        environment_prefix=Identifier(derive.environment_prefix(spec.name)),
        image=ImageName(derive.image(spec)),
        licence=LicenceId(spec.licence or "Apache-2.0"),
        owner=spec.owner or f"The {spec.name} provider authors",
        contracts=contracts,
        releases=_releases(spec),
        components=(_component(spec, contracts),),
        credentials=_credentials(spec),
        flavors=_labels(spec.flavors, "topology"),
        cluster_classes=_labels(spec.cluster_classes, spec.name),
        rbac=_rbac(spec),
        dependencies=spec.dependencies or (),
    )


def _component(spec: ProviderSpec, contracts: tuple[Contract, ...]) -> Component:
    return Component(
        type=DnsLabel(_TYPE),
        label=DnsLabel(f"{_TYPE}-{spec.name}"),
        components_file=RelativePath(f"{_TYPE}-components.yaml"),
        namespace=DnsLabel(derive.namespace(spec)),
        config=RelativePath("config"),
        resources=tuple(_resources(spec, contracts)),
    )


def _resources(spec: ProviderSpec, contracts: tuple[Contract, ...]) -> Iterator[Resource]:
    """The InfraCluster and its template, the InfraMachines and theirs, then the identity."""
    group = DnsSubdomain(derive.group(spec))
    versions = tuple(
        ApiVersion(VersionName(name), served, storage, contracts[0])
        for name, served, storage in derive.api_versions(spec)
    )
    kinds = list(spec.infrastructure.items())
    for role in (Role.INFRA_CLUSTER, Role.INFRA_MACHINE):
        for kind, described in kinds:
            if described.implements == role:
                yield from pair(kind, described, spec, group, versions)
    credentials = derive.credentials_kind(spec)
    if credentials is not None:
        yield identity(credentials, group, versions)


def _releases(spec: ProviderSpec) -> tuple[Release, ...]:
    newest_first = sorted(spec.releases, key=derive.series_order, reverse=True)
    return tuple(
        Release(SeriesName(series), *derive.series_order(series), spec.releases[series])
        for series in newest_first
    )


def _credentials(spec: ProviderSpec) -> Credentials | None:
    kind = derive.credentials_kind(spec)
    if kind is None:
        return None
    keys = None if isinstance(spec.credentials, str | None) else spec.credentials.keys
    return Credentials(KindName(kind), keys or derive.DEFAULT_KEYS)


def _rbac(spec: ProviderSpec) -> tuple[PolicyRule, ...]:
    return tuple(
        PolicyRule(rule.api_groups, rule.resources, rule.verbs, rule.resource_names or ())
        for rule in spec.rbac or ()
    )


def _labels(given: tuple[str, ...] | None, default: str) -> tuple[DnsLabel, ...]:
    return tuple(DnsLabel(name) for name in ((default,) if given is None else given))
