"""A description that was found to be valid -> :class:`Provider`.

Makes no findings: a name that does not fit raises ValueError, and that is a bug of the checks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from capsmith.contract.model import Contract
from capsmith.provider import derive
from capsmith.provider.extension import hooks
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
from capsmith.provider.pools import pool_flavors
from capsmith.provider.resources import identity, resources_of
from capsmith.provider.sections import SectionType
from capsmith.provider.topology import TOPOLOGY_FLAVOR
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

_DESCRIPTION = "Cluster API {words} for {title}."
_ORDER = (
    Role.INFRA_CLUSTER,
    Role.INFRA_MACHINE,
    Role.INFRA_MACHINE_POOL,
    Role.BOOTSTRAP_CONFIG,
    Role.CONTROL_PLANE,
    Role.IP_POOL,
    Role.GLOBAL_IP_POOL,
    Role.ADDON,
)
"""How the resources of a component are ordered."""


def build_provider(spec: ProviderSpec, known: Mapping[str, Contract]) -> Provider:
    """The provider, complete.  Raises ValueError for a description that was not checked."""
    title = spec.title or derive.default_title(spec.name)
    contracts = tuple(known[version] for version in sorted(spec.contracts, reverse=True))
    return Provider(
        name=DnsLabel(spec.name),
        title=title,
        description=(spec.description or _description(spec, title)).strip(),
        repository=RepositoryUrl(spec.repository),
        distribution=DnsLabel(derive.distribution(spec)),
        package=Identifier(derive.package(spec)),
        environment_prefix=Identifier(derive.environment_prefix(spec.name)),
        image=ImageName(derive.image(spec)),
        licence=LicenceId(spec.licence or "Apache-2.0"),
        owner=spec.owner or f"The {spec.name} provider authors",
        contracts=contracts,
        releases=_releases(spec),
        former_contracts=tuple(
            known[version]
            for version in sorted(set(spec.releases.values()), reverse=True)
            if version not in spec.contracts
        ),
        components=tuple(_component(spec, section, known) for section in derive.sections(spec)),
        credentials=_credentials(spec),
        flavors=_labels(spec.flavors, TOPOLOGY_FLAVOR, *pool_flavors(spec)),
        cluster_classes=_labels(spec.cluster_classes, spec.name),
        rbac=_rbac(spec),
        dependencies=spec.dependencies or (),
    )


def _description(spec: ProviderSpec, title: str) -> str:
    words = [section.words for section in derive.sections(spec)]
    *first, last = words
    return _DESCRIPTION.format(
        words=f"{', '.join(first)} and {last}" if first else last, title=title
    )


def _component(
    spec: ProviderSpec, section: SectionType, known: Mapping[str, Contract]
) -> Component:
    return Component(
        type=DnsLabel(section.type),
        label=DnsLabel(f"{section.type}-{spec.name}"),
        components_file=RelativePath(f"{section.type}-components.yaml"),
        namespace=DnsLabel(derive.namespace(spec, section.section)),
        config=RelativePath(section.config),
        resources=tuple(_resources(spec, section, known)),
        words=section.words,
        kind=KindName(section.kind),
        hooks=(
            hooks(spec, known[max(spec.contracts)]) if section.section == "runtimeExtension" else ()
        ),
    )


def _resources(
    spec: ProviderSpec, section: SectionType, known: Mapping[str, Contract]
) -> Iterator[Resource]:
    """The kinds in the order of their roles, each before its template; the identity is last."""
    if not section.group:
        return
    group = DnsSubdomain(derive.group(spec, section.section))
    versions = tuple(
        ApiVersion(VersionName(each.name), each.served, each.storage, known[each.contract])
        for each in derive.api_versions(spec)
    )
    for role in _ORDER:
        for where, kind, described in spec.kinds():
            if where == section.section and described.implements == role:
                yield from resources_of(kind, described, spec, group, versions)
    credentials = derive.credentials_kind(spec)
    if credentials is not None and section.section == "infrastructure":
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


def _labels(given: tuple[str, ...] | None, *default: str) -> tuple[DnsLabel, ...]:
    return tuple(DnsLabel(name) for name in (default if given is None else given))
