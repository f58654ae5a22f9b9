"""Derive a draft from a description by choosing a value for each setting that the author left out.

Every description that the model accepts has a draft, but names in the draft may be invalid.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from capsmith.provider.contract_fields import RECORDED
from capsmith.provider.credentials import ON_BY_DEFAULT, SWITCHABLE
from capsmith.provider.described_kinds import (
    MANAGED,
    has_template,
    is_machine_based,
    supports_classes,
    template_short_names,
)
from capsmith.provider.draft import (
    CREDENTIALS_FEATURE,
    DEFAULT_API_VERSION,
    Draft,
    DraftHook,
    DraftIdentity,
    DraftKind,
    DraftVersion,
)
from capsmith.provider.model import (
    POOL_FLAVOR,
    TOPOLOGY_FLAVOR,
    WORKLOAD_CLIENT,
    GroupKind,
    Webhooks,
)
from capsmith.provider.naming import kebab, pluralise, split_words
from capsmith.provider.sections import SECTION_TYPES, SectionType, combine
from capsmith.provider.versions import rank_api_version, rank_series
from capsmith.safetext import DnsSubdomain, KindName

if TYPE_CHECKING:
    from capsmith.contract.model import Contract
    from capsmith.provider_yaml.model import (
        ApiVersionSpec,
        CredentialsSpec,
        KindSpec,
        ProviderSpec,
        WebhooksSpec,
    )


def select_versions(
    versions: tuple[DraftVersion, ...], written: Sequence[str | ApiVersionSpec] | None
) -> tuple[DraftVersion, ...]:
    """Return a kind's API versions, with the settings that the author changes for this kind.

    ``versions`` are the provider's versions. All of them are returned if ``written`` is None.
    Unknown names are skipped, because a check reports them.
    """
    if written is None:
        return versions
    named = {each if isinstance(each, str) else each.name: each for each in written}
    found = [_changed(each, named[each.name]) for each in versions if each.name in named]
    stored = {each.name for each in written if not isinstance(each, str) and each.storage}
    if not stored:
        return tuple(found)
    return tuple(each._replace(storage=each.name in stored) for each in found)


def _changed(version: DraftVersion, written: str | ApiVersionSpec) -> DraftVersion:
    if isinstance(written, str):
        return version
    if written.served is not None:
        version = version._replace(served=written.served)
    if written.contract is not None:
        version = version._replace(contract=written.contract)
    if written.deprecated is not None:
        warning = written.deprecation_warning or ""
        version = version._replace(deprecated=written.deprecated, deprecation_warning=warning)
    elif written.deprecation_warning is not None:
        version = version._replace(deprecation_warning=written.deprecation_warning)
    return version


_OFF_BY_DEFAULT = frozenset(
    {"interruptible", "capacity", "addressesFromPools", "externalManagedControlPlane"}
) | {WORKLOAD_CLIENT, CREDENTIALS_FEATURE, "observedGeneration", "ready"}
_WITHOUT_FIELD = {"InfraCluster": (WORKLOAD_CLIENT,), "InfraMachine": (WORKLOAD_CLIENT,)}
"""Features that have no field in the contract, by role."""
_OFF_BY_SHAPE = {
    # The InfraCluster provides the endpoint for machines; a managed control plane provides its own.
    ("ControlPlane", False): frozenset({"controlPlaneEndpoint"}),
    ("ControlPlane", True): frozenset({"machines", "replicas", "rolloutAfter"}),
    ("InfraMachinePool", False): frozenset({"machines"}),
}
"""Features that are off by default, keyed by role and by whether the control plane is managed."""


def derive_features(described: KindSpec, contracts: Iterable[Contract]) -> frozenset[str]:
    """Return a kind's enabled features.

    The author's choices take precedence.  Other defaults depend on the role and, for a control
    plane, on whether it is managed.
    """
    switched = described.features or {}
    managed = switched.get(MANAGED, False)
    off = _OFF_BY_DEFAULT | _OFF_BY_SHAPE.get((described.implements, managed), frozenset())
    off |= {RECORDED} if has_own_records(described) else frozenset()
    if described.implements in ON_BY_DEFAULT:
        off -= {CREDENTIALS_FEATURE}
    # A feature that none of the provider's contracts has stays off, whatever the author chose; a
    # check reports it.
    known = _known_features(described.implements, contracts)
    return frozenset(feature for feature in known if switched.get(feature, feature not in off))


def has_own_records(described: KindSpec) -> bool:
    """Return whether an author's field has the same name as the manager's record field.

    The manager then keeps its records in annotations, as in repositories generated before that
    field existed.
    """
    versions = (described.versions or {}).values()
    return any(RECORDED in (spec or {}) for spec in (described.spec, *(v.spec for v in versions)))


def list_switchable_features(described: KindSpec, contracts: Iterable[Contract]) -> frozenset[str]:
    """Return the features that the author may switch on or off.

    Empty if the author switches none, so that unused contract versions need not be read.
    """
    return _known_features(described.implements, contracts) if described.features else frozenset()


def _known_features(role: str, contracts: Iterable[Contract]) -> frozenset[str]:
    """Return the switchable features of a role and its template in all ``contracts``."""
    shapes = [
        contract.types[name]
        for contract in contracts
        for name in (role, f"{role}Template")
        if name in contract.types
    ]
    fields = [f for shape in shapes for f in (*shape.spec.values(), *shape.status.values())]
    known = frozenset(field.feature for field in fields) - {""}
    if role not in SWITCHABLE | ON_BY_DEFAULT:
        known -= {CREDENTIALS_FEATURE}
    return known | frozenset(_WITHOUT_FIELD.get(role, ()))


_DEFAULT_KEYS = ("token",)
_TIMEOUT_SECONDS = 10
_DESCRIPTION = "Cluster API {words} for {title}."
_REGISTRIES = {"github.com": "ghcr.io", "gitlab.com": "registry.gitlab.com"}
_SHORT = {
    "InfraCluster": ("Cluster", "cl"),
    "InfraMachine": ("Machine", "m"),
    "InfraMachinePool": ("MachinePool", "mp"),
    "BootstrapConfig": ("Config", "c"),
    "ControlPlane": ("ControlPlane", "cp"),
}


def derive(spec: ProviderSpec, contracts: Mapping[str, Contract]) -> Draft:
    """Return the draft of ``spec``.

    ``contracts`` maps every known contract version to its contract.  Never fails: every spec that
    the model accepts has a draft, whose errors the checks report.
    """
    path = [segment for segment in urlsplit(spec.repository).path.split("/") if segment]
    # The normalized name of a Python distribution (PEP 503): lower case with single hyphens.
    distribution = re.sub(r"[^a-z0-9]+", "-", path[-1].lower()).strip("-")
    title = spec.title or _title(spec.name)
    sections = tuple(each for each in SECTION_TYPES.values() if spec.has(each.section))
    identities = _identities(spec)
    names = _kubectl_names(spec, identities)
    api_versions = _api_versions(spec)
    groups = _groups(spec)
    return Draft(
        spec=spec,
        title=title,
        description=(spec.description or _description(sections, title)).strip(),
        owner=spec.owner or f"The {spec.name} provider authors",
        licence=spec.licence or "Apache-2.0",
        repository_path=tuple(path),
        distribution=distribution,
        package=spec.package or distribution.replace("-", "_"),
        environment_prefix=_environment_prefix(spec.name),
        image=_image(spec, path),
        sections=sections,
        components=combine(sections, spec.components or {}),
        groups=groups,
        namespaces=_namespaces(spec),
        kinds=_kinds(spec, contracts, api_versions, groups, names),
        machine_kinds=tuple(_kinds_that_implement("InfraMachine", spec)),
        api_versions=api_versions,
        series=tuple(sorted(spec.releases, key=rank_series, reverse=True)),
        identities=identities,
        hooks=_hooks(spec),
        flavors=_flavors(spec) if spec.flavors is None else spec.flavors,
        cluster_classes=_cluster_classes(spec),
        kubectl_names=names,
    )


def _title(name: str) -> str:
    """Convert a name to a title: ``acme-cloud`` -> ``Acme Cloud``."""
    return " ".join(word[:1].upper() + word[1:] for word in split_words(name))


def _description(sections: Iterable[SectionType], title: str) -> str:
    *first, last = [section.words for section in sections] or [""]
    listed = f"{', '.join(first)} and {last}" if first else last
    return _DESCRIPTION.format(words=listed, title=title)


def _environment_prefix(name: str) -> str:
    """Convert a name to an environment variable prefix: ``acme-cloud`` -> ``ACME_CLOUD``."""
    text = name.upper().replace("-", "_")
    # Shell variables cannot start with a digit.
    return f"_{text}" if text[0].isdigit() else text


def _image(spec: ProviderSpec, path: list[str]) -> str:
    """Return the name of the manager's image, without a tag (MG-10)."""
    if spec.image is not None:
        return spec.image
    host = urlsplit(spec.repository).netloc.lower()
    # GitLab's registry has a folder for each project, and the others have one for each owner.
    parts = path if host == "gitlab.com" else path[:-1]
    organisation = "/".join(parts).lower()
    return f"{_REGISTRIES.get(host, host)}/{organisation}/cluster-api-{spec.name}-controller"


def _groups(spec: ProviderSpec) -> dict[str, str]:
    default = {section: each.group for section, each in SECTION_TYPES.items()}
    return default | {str(section): group for section, group in (spec.groups or {}).items()}


def _namespaces(spec: ProviderSpec) -> dict[str, str]:
    """Return the managers' namespaces by section; cluster-scoped names start with them (CC-31)."""
    default = {
        section: each.namespace.format(name=spec.name) for section, each in SECTION_TYPES.items()
    }
    return default | {str(section): name for section, name in (spec.namespaces or {}).items()}


def _api_versions(spec: ProviderSpec) -> tuple[DraftVersion, ...]:
    only = spec.contracts[0] if len(set(spec.contracts)) == 1 else ""
    written = spec.api_versions or (DEFAULT_API_VERSION,)
    named = {each if isinstance(each, str) else each.name for each in written}
    # If any version says which one is stored, the author decides this for all of them; a check
    # verifies that exactly one is.
    newest = ""
    if all(isinstance(each, str) or each.storage is None for each in written):
        newest = max(named, key=rank_api_version)
    return tuple(
        (
            DraftVersion(each, True, each == newest, only)
            if isinstance(each, str)
            else DraftVersion(
                name=each.name,
                served=each.served is not False,
                storage=bool(each.storage) or each.name == newest,
                contract=each.contract or only,
                deprecated=bool(each.deprecated),
                deprecation_warning=each.deprecation_warning or "",
            )
        )
        for each in written
    )


def _kubectl_names(spec: ProviderSpec, identities: Iterable[DraftIdentity]) -> frozenset[str]:
    kinds = [identity.kind for identity in identities]
    plurals = []
    for _, kind, described in spec.kinds():
        kinds.append(kind)
        if described.plural is not None:
            plurals.append(described.plural)
        if has_template(described):
            kinds.append(f"{kind}Template")
    lower = [kind.lower() for kind in kinds]
    return frozenset({*lower, *map(pluralise, lower), *plurals})


def _kinds(
    spec: ProviderSpec,
    contracts: Mapping[str, Contract],
    api_versions: tuple[DraftVersion, ...],
    groups: Mapping[str, str],
    names: frozenset[str],
) -> tuple[DraftKind, ...]:
    # API versions may follow a contract that is no longer served, because objects may still be
    # stored in it.
    own = {*spec.contracts, *(version.contract for version in api_versions)}
    followed = [contract for version, contract in contracts.items() if version in own]
    given = {
        name
        for _, _, described in spec.kinds()
        for name in (*(described.short_names or ()), *template_short_names(described))
    }
    return tuple(
        DraftKind(
            section=section,
            name=kind,
            spec=described,
            known_features=list_switchable_features(described, contracts.values()),
            features=derive_features(described, followed),
            short_names=_short_names(kind, described, names | given),
            has_template=has_template(described),
            namespaced=described.scope != "Cluster",
            machine_kind=_machine_kind(described, spec),
            bootstrap=_bootstrap(described, spec, groups),
            webhooks=_webhooks(described.webhooks, has_template(described)),
            group=described.group or groups[section],
            plural=described.plural or pluralise(kind.lower()),
            **_versions(described, api_versions),
        )
        for section, kind, described in spec.kinds()
    )


def _versions(
    described: KindSpec, api_versions: tuple[DraftVersion, ...]
) -> dict[str, tuple[DraftVersion, ...]]:
    """Return the versions of a kind and of its template, as keyword arguments of a draft.

    A template has its kind's versions by default.
    """
    versions = select_versions(api_versions, described.api_versions)
    template, own = described.template, None
    if template is not None and not isinstance(template, bool):
        own = template.api_versions
    of_template = versions if own is None else select_versions(api_versions, own)
    return {"versions": versions, "template_versions": of_template}


def _short_names(kind: str, described: KindSpec, taken: frozenset[str]) -> tuple[str, ...]:
    """Return a short name such as ``acmem`` for ``AcmeMachine`` (CRD-10).

    Empty if there is no convention for the role, or if the short name is in ``taken``.
    """
    if described.short_names is not None:
        return described.short_names
    suffix, short = _SHORT.get(described.implements, ("", ""))
    stem = kind.removesuffix(suffix).lower()
    # kubectl resolves a name to only one kind, so a short name that is taken cannot be used. The
    # kind then has none, as if there were no convention.
    if not suffix or not kind.endswith(suffix) or not stem or stem + short in taken:
        return ()
    return (stem + short,)


def _machine_kind(described: KindSpec, spec: ProviderSpec) -> str | None:
    """Return the machine kind of a pool: the one that the author names, or the only one."""
    if described.implements != "InfraMachinePool":
        return None
    written: str | None = getattr(
        described, "machine_kind", None
    )  # kinds of infrastructure have it
    if written is not None:
        return written
    kinds = _kinds_that_implement("InfraMachine", spec)
    return kinds[0] if len(kinds) == 1 else None


def _bootstrap(
    described: KindSpec, spec: ProviderSpec, groups: Mapping[str, str]
) -> GroupKind | None:
    """Return the bootstrap kind of a control plane: the one the author names, or the only one."""
    if not is_machine_based(described):
        return None
    written = getattr(described, "bootstrap", None)  # kinds of control planes have it
    if written is not None and not isinstance(written, str):
        return GroupKind(DnsSubdomain(written.group), KindName(written.kind))
    kinds = _kinds_that_implement("BootstrapConfig", spec)
    kind = written if written is not None else (kinds[0] if len(kinds) == 1 else None)
    if kind not in kinds:
        return None
    return GroupKind(DnsSubdomain(groups["bootstrap"]), KindName(kind))


def _identities(spec: ProviderSpec) -> tuple[DraftIdentity, ...]:
    """Return the identity kinds, in the author's order."""
    return tuple(_identity(path, each) for path, each in spec.identities())


def _identity(path: tuple[str | int, ...], written: str | CredentialsSpec) -> DraftIdentity:
    if isinstance(written, str):
        return DraftIdentity(written, _DEFAULT_KEYS, False, True, (), {}, path, path)
    secret = written.secret is not False
    return DraftIdentity(
        kind=written.kind,
        keys=written.keys or (_DEFAULT_KEYS if secret else ()),
        namespaced=written.namespaced or False,
        secret=secret,
        sources=tuple(written.sources or ()),
        fields=written.spec or {},
        path=path,
        kind_path=(*path, "kind"),
    )


def _webhooks(written: WebhooksSpec | None, has_template: bool) -> Webhooks | None:
    """Return the webhook settings with defaults applied, or None if the author wrote none."""
    if written is None:
        return None
    return Webhooks(
        validation=bool(written.validation),
        defaulting=bool(written.defaulting),
        deletion=bool(written.deletion),
        templates=has_template and written.templates is not False,
        timeout_seconds=written.timeout_seconds or _TIMEOUT_SECONDS,
    )


def _hooks(spec: ProviderSpec) -> tuple[DraftHook, ...]:
    """Return the hooks in the author's order; default names are like ``generate-patches``."""
    written = spec.runtime_extension.hooks if spec.runtime_extension is not None else ()
    return tuple(
        (
            DraftHook(each, kebab(each), None)
            if isinstance(each, str)
            else DraftHook(each.hook, each.name or kebab(each.hook), each)
        )
        for each in written
    )


def _flavors(spec: ProviderSpec) -> tuple[str, ...]:
    """Return the topology flavor, and one flavor for each machine pool kind."""
    pools = _kinds_that_implement("InfraMachinePool", spec)
    further = (f"{POOL_FLAVOR}-{kind.lower()}" for kind in pools[1:])
    topology = (TOPOLOGY_FLAVOR,) if _releases_classes(spec) else ()
    return (*topology, *(POOL_FLAVOR for _ in pools[:1]), *further)


def _cluster_classes(spec: ProviderSpec) -> tuple[str, ...]:
    if spec.cluster_classes is not None:
        return spec.cluster_classes
    return (spec.name,) if _releases_classes(spec) else ()


def _releases_classes(spec: ProviderSpec) -> bool:
    # clusterctl requests templates of infrastructure providers only.
    return bool(spec.infrastructure) and supports_classes(spec)


def _kinds_that_implement(role: str, spec: ProviderSpec) -> list[str]:
    return [kind for _, kind, described in spec.kinds() if described.implements == role]
