"""Build a :class:`Provider` from a draft that passed all checks.

Nothing here reports findings. A name that is still invalid raises ValueError, because it means that
a check is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from capsmith.contract.model import Contract
from capsmith.provider.credentials import find_identity_section
from capsmith.provider.draft import Draft, DraftIdentity, DraftVersion
from capsmith.provider.hooks import build_hooks
from capsmith.provider.manager import build_manager
from capsmith.provider.model import (
    ApiVersion,
    Component,
    Identity,
    PolicyRule,
    Provider,
    Release,
    Resource,
    Role,
)
from capsmith.provider.naming import name_module
from capsmith.provider.resources import build_identity, build_resources
from capsmith.provider.sections import SectionType
from capsmith.provider.versions import rank_series
from capsmith.safetext import (
    DnsLabel,
    DnsSubdomain,
    Identifier,
    ImageName,
    KindName,
    LicenceId,
    ModuleName,
    RelativePath,
    RepositoryUrl,
    SeriesName,
    VersionName,
)

_ORDER = (
    Role.INFRA_CLUSTER,
    Role.INFRA_MACHINE,
    Role.INFRA_MACHINE_POOL,
    Role.BOOTSTRAP_CONFIG,
    Role.CONTROL_PLANE,
    Role.IP_POOL,
    Role.GLOBAL_IP_POOL,
    Role.ADDON,
    Role.REMEDIATION,
    Role.RESOURCE,
)
"""Order of the resources in a component, by role."""


def build_provider(draft: Draft, known: Mapping[str, Contract]) -> Provider:
    """Build the provider from a checked draft. ``known`` maps contract versions to their contracts.

    Raises ValueError for an invalid name, which means that a check for it is missing.
    """
    spec = draft.spec
    return Provider(
        name=DnsLabel(spec.name),
        title=draft.title,
        description=draft.description,
        repository=RepositoryUrl(spec.repository),
        distribution=DnsLabel(draft.distribution),
        package=Identifier(draft.package),
        environment_prefix=Identifier(draft.environment_prefix),
        image=ImageName(draft.image),
        licence=LicenceId(draft.licence),
        owner=draft.owner,
        contracts=tuple(known[version] for version in sorted(spec.contracts, reverse=True)),
        releases=tuple(
            Release(SeriesName(series), *rank_series(series), spec.releases[series])
            for series in draft.series
        ),
        former_contracts=tuple(
            known[version]
            for version in sorted(set(spec.releases.values()), reverse=True)
            if version not in spec.contracts
        ),
        components=tuple(_component(draft, sections, known) for sections in draft.components),
        identities=tuple(_identity(each) for each in draft.identities),
        flavors=tuple(DnsLabel(name) for name in draft.flavors),
        cluster_classes=tuple(DnsLabel(name) for name in draft.cluster_classes),
        rbac=tuple(
            PolicyRule(rule.api_groups, rule.resources, rule.verbs, rule.resource_names or ())
            for rule in spec.rbac or ()
        ),
        dependencies=spec.dependencies or (),
        dev_dependencies=spec.dev_dependencies or (),
        runtime=spec.runtime or "vendored",
        manager=build_manager(spec.manager, draft.environment_prefix),
        sdk=ModuleName(spec.sdk) if spec.sdk is not None else None,
        e2e=bool(spec.e2e),
    )


def _identity(draft: DraftIdentity) -> Identity:
    sources = tuple(KindName(kind) for kind in draft.sources)
    return Identity(KindName(draft.kind), draft.keys, draft.secret, sources)


def _component(
    draft: Draft, sections: Sequence[SectionType], known: Mapping[str, Contract]
) -> Component:
    section, *others = sections
    is_extension = section.section == "runtimeExtension"
    return Component(
        type=DnsLabel(section.type),
        label=DnsLabel(f"{section.type}-{draft.spec.name}"),
        components_file=RelativePath(f"{section.type}-components.yaml"),
        namespace=DnsLabel(draft.namespaces[section.section]),
        config=RelativePath(section.config),
        resources=tuple(
            kind._replace(module=name_module(kind.kind, draft.spec.words or ()))
            for each in sections
            for kind in _resources(draft, each, known)
        ),
        words=" and ".join(each.words for each in sections),
        kind=KindName(section.kind),
        hooks=build_hooks(draft.hooks, known[max(draft.spec.contracts)]) if is_extension else (),
        further_types=tuple(DnsLabel(each.type) for each in others),
    )


def _resources(
    draft: Draft, section: SectionType, known: Mapping[str, Contract]
) -> Iterator[Resource]:
    """Yield the resources in the order of their roles, identities last.

    Each kind is followed by its template.
    """
    kinds = draft.kinds_of(section.section)
    # The order is visible in generated files, and a new kind must not move the others.
    for role in _ORDER:
        for kind in kinds:
            if kind.spec.implements == role:
                versions = _versions(kind.versions, known)
                of_template = _versions(kind.template_versions, known)
                yield from build_resources(kind, draft, versions, of_template)
    if section.section == find_identity_section(draft):
        group = DnsSubdomain(draft.groups[section.section])
        versions = _versions(draft.api_versions, known)
        yield from (build_identity(each, group, versions) for each in draft.identities)


def _versions(
    versions: Sequence[DraftVersion], known: Mapping[str, Contract]
) -> tuple[ApiVersion, ...]:
    return tuple(
        ApiVersion(
            VersionName(each.name),
            each.served,
            each.storage,
            known[each.contract],
            each.deprecated,
            each.deprecation_warning,
        )
        for each in versions
    )
