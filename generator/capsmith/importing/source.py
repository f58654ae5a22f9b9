"""Read a provider's CRDs, and determine their roles and their sections in provider.yaml."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from capsmith.contract.model import Contract
from capsmith.importing.compare import normalize
from capsmith.importing.fields import convert_fields
from capsmith.manifests.crds import Crd, read_crds
from capsmith.manifests.parse import Manifest, mapping_of
from capsmith.provider.credentials import SWITCHABLE
from capsmith.provider.draft import CREDENTIALS_FEATURE
from capsmith.provider.model import SECRET_REF, SOURCE_REF
from capsmith.provider.sections import SECTION_TYPES

PROVIDER_LABEL = "cluster.x-k8s.io/provider"
RESOURCE = "Resource"
IDENTITY = "Identity"
_ALLOWED = "allowedNamespaces"
_TEMPLATE = "Template"
_SECTIONS = {
    "InfraCluster": "infrastructure",
    "InfraMachine": "infrastructure",
    "InfraMachinePool": "infrastructure",
    "BootstrapConfig": "bootstrap",
    "ControlPlane": "controlPlane",
    "IPPool": "ipam",
    "GlobalIPPool": "ipam",
    "Addon": "addon",
    "Remediation": "infrastructure",
    "Identity": "infrastructure",
}
_INFRASTRUCTURE = "infrastructure"
_ORDER = [*_SECTIONS, RESOURCE]
_OF_CORE = frozenset(f"{part}cluster.x-k8s.io" for part in ("", "clusterctl.", "runtime."))
_KINDS_OF_CORE = frozenset(
    {
        ("ipam.cluster.x-k8s.io", "IPAddress"),
        ("ipam.cluster.x-k8s.io", "IPAddressClaim"),
        ("addons.cluster.x-k8s.io", "ClusterResourceSet"),
        ("addons.cluster.x-k8s.io", "ClusterResourceSetBinding"),
    }
)
_ADDONS = ("addon.", "addons.")
_ENDPOINT = {"host", "port"}
_SELECTOR = "clusterSelector"
"""Field of an add-on that selects the clusters on which it is installed."""
_FIELDS = {
    "InfraMachinePool": ("spec", "providerIDList"),
    "InfraMachine": ("spec", "providerID"),
    "BootstrapConfig": ("status", "dataSecretName"),
    "InfraCluster": ("spec", "controlPlaneEndpoint"),
}
"""Path to the field that identifies a kind's role if the kind has a template; the first match
applies."""
_WITH_TEMPLATE = frozenset({"InfraMachine", "Remediation"})
"""Roles whose objects core only creates from templates: a kind without a template is a helper."""


class SourceCrd(NamedTuple):
    """A CRD, its kind's role in provider.yaml, and its template's CRD, if any."""

    crd: Crd
    role: str
    """Role in provider.yaml, such as ``InfraMachine`` or ``Resource``."""
    section: str
    template: Crd | None = None
    refers_to_identity: bool = False
    """Whether the kind has the contract's optional reference to an identity."""

    @property
    def all(self) -> tuple[Crd, ...]:
        """Return the CRD, followed by its template's CRD if there is one."""
        return (self.crd,) if self.template is None else (self.crd, self.template)


def read_sources(
    manifests: Sequence[Manifest], roles: Mapping[str, str], contract: Contract
) -> tuple[SourceCrd, ...]:
    """Return the CRDs that belong to the provider, each with its template, sorted by role.

    Core's CRDs and CRDs unrelated to Cluster API are left out.  ``roles`` are the roles that the
    user chose, by kind.  ``contract`` defines the shape of identities.  If a CRD occurs several
    times, the last occurrence is used, because build results come after their sources.
    """
    found = {each.manifest.name: each for each in read_crds(tuple(manifests)) if _is_own(each)}
    crds = {(each.group, each.kind): each for each in found.values()}
    sources = []
    for (group, kind), crd in crds.items():
        # A template belongs to its kind unless the kind has no role; then both are treated as
        # separate kinds.
        owner = crds.get((group, kind.removesuffix(_TEMPLATE)), crd)
        if owner is not crd and _role(owner, crds, roles, contract) != RESOURCE:
            continue
        role = _role(crd, crds, roles, contract)
        template = None if role == RESOURCE else crds.get((group, kind + _TEMPLATE))
        section = _SECTIONS.get(role, _INFRASTRUCTURE)
        sources.append(
            SourceCrd(crd, role, section, template, _refers_to_identity(crd, role, contract))
        )
    # A folder of CRDs often contains CRDs of other projects, such as a CNI plugin.  The provider's
    # CRDs share a group with a kind that has a role, or have the label that kustomize adds.
    sources = _in_sections(sources)
    groups = {each.crd.group for each in sources if each.role != RESOURCE}
    sources = [
        each
        for each in sources
        if each.crd.group in groups or each.crd.kind in roles or _is_labelled(each.crd)
    ]
    return tuple(sorted(sources, key=lambda each: (_ORDER.index(each.role), each.crd.kind)))


def select_by_name(
    sources: Sequence[SourceCrd],
) -> tuple[tuple[SourceCrd, ...], tuple[tuple[SourceCrd, SourceCrd], ...]]:
    """Return the kinds of different names, and each further kind with the one of its name.

    provider.yaml has each name once.  Kinds with a role come first, and of several of one role the
    one in the shortest API group: further groups are usually below the provider's own.
    """
    order = sorted(sources, key=lambda each: (_ORDER.index(each.role), len(each.crd.group)))
    first: dict[str, SourceCrd] = {}
    for each in order:
        first.setdefault(each.crd.kind, each)
    kept = tuple(each for each in sources if first[each.crd.kind] is each)
    others = ((each, first[each.crd.kind]) for each in sources if first[each.crd.kind] is not each)
    return kept, tuple(others)


def _in_sections(sources: Sequence[SourceCrd]) -> list[SourceCrd]:
    """Put kinds without a role into the section of their API group, or of the other kinds.

    The infrastructure manager reads identities; without an infrastructure section, identities are
    treated as kinds without a role.
    """
    infrastructure = [each for each in sources if each.section == _INFRASTRUCTURE]
    if all(each.role in (RESOURCE, IDENTITY) for each in infrastructure):
        sources = [
            each._replace(role=RESOURCE) if each.role == IDENTITY else each for each in sources
        ]
    with_role = sorted(
        (each for each in sources if each.role != RESOURCE),
        key=lambda each: _ORDER.index(each.role),
    )
    by_group = {each.crd.group: each.section for each in reversed(with_role)}
    sections = list(dict.fromkeys(each.section for each in with_role))
    return [
        (
            each
            if each.role != RESOURCE
            else each._replace(section=by_group.get(each.crd.group) or _section(each.crd, sections))
        )
        for each in sources
    ]


def _section(crd: Crd, sections: Sequence[str]) -> str:
    """Return the section for a kind in a separate group; ``sections`` contain kinds with a role."""
    label = str(crd.labels.get(PROVIDER_LABEL, ""))
    usual = [
        each.section
        for each in SECTION_TYPES.values()
        if each.group and (label.startswith(f"{each.type}-") or crd.group == each.group)
    ]
    chosen = [each for each in usual if each in sections] or sections or usual
    return chosen[0] if chosen else _INFRASTRUCTURE


def find_foreign(
    manifests: Sequence[Manifest], sources: Sequence[SourceCrd]
) -> tuple[Manifest, ...]:
    """Return the CRDs that belong to neither the provider nor core, such as a CNI plugin's."""
    taken = {crd.manifest.name for source in sources for crd in source.all}
    crds = {each.manifest.name: each for each in read_crds(tuple(manifests)) if _is_own(each)}
    return tuple(each.manifest for name, each in crds.items() if name not in taken)


def _is_labelled(crd: Crd) -> bool:
    """Return whether a CRD belongs to a provider: kustomize labels all objects of a provider."""
    return any(str(key).startswith("cluster.x-k8s.io/") for key in crd.labels) or (
        crd.group.endswith("cluster.x-k8s.io")
    )


def _is_own(crd: Crd) -> bool:
    core = crd.group in _OF_CORE or (crd.group, crd.kind) in _KINDS_OF_CORE
    return bool(crd.kind and crd.group and crd.versions) and not core


def _role(
    crd: Crd,
    crds: Mapping[tuple[str, str], Crd],
    roles: Mapping[str, str],
    contract: Contract,
) -> str:
    if crd.kind in roles:
        return roles[crd.kind]
    role = crd.role
    if _is_addon(crd):
        role = "Addon"
    elif not role and _is_cluster(crd):
        role = "InfraCluster"
    elif not role and (crd.group, crd.kind + _TEMPLATE) in crds:
        role = _role_by_fields(crd)
    if role == IDENTITY:
        return role if is_identity(crd, contract) else RESOURCE
    if role not in _SECTIONS:
        return RESOURCE
    if role in _WITH_TEMPLATE and (crd.group, crd.kind + _TEMPLATE) not in crds:
        return RESOURCE
    if _SECTIONS[role] == "ipam" and not crd.group.startswith("ipam."):
        return RESOURCE
    return role


def _role_by_fields(crd: Crd) -> str:
    """Return the role by the fields that core reads, for kinds whose names show none; else ''."""
    for role, (part, field) in _FIELDS.items():
        # The last version is usually the newest: controller-gen sorts them by name.
        if field in mapping_of(crd.versions[-1].schema, "properties", part, "properties"):
            return role
    return ""


def _is_addon(crd: Crd) -> bool:
    spec = mapping_of(crd.versions[-1].schema, "properties", "spec", "properties")
    return crd.group.startswith(_ADDONS) and _SELECTOR in spec


def _is_cluster(crd: Crd) -> bool:
    """Return whether a kind is a cluster in a group of the provider's own, without a template."""
    spec = mapping_of(crd.versions[-1].schema, "properties", "spec", "properties")
    endpoint = mapping_of(spec, "controlPlaneEndpoint", "properties")
    is_own_group = not crd.group.endswith(".cluster.x-k8s.io")
    return is_own_group and crd.kind.endswith("Cluster") and set(endpoint) >= _ENDPOINT


def is_identity(crd: Crd, contract: Contract) -> bool:
    """Return whether a CRD has the contract's identity fields, with the same schemas.

    An identity with different schemas is treated as a kind without a role.
    """
    fields = _identity_fields(crd)
    shape = contract.types[IDENTITY].spec
    known = [name for name in (SECRET_REF, _ALLOWED) if name in fields]
    # Only a cluster-scoped identity must say which namespaces may use it.
    if (_ALLOWED in fields) != (crd.scope == "Cluster") or not known:
        return False
    return all(normalize(fields[name]) == normalize(shape[name].schema) for name in known)


def _refers_to_identity(crd: Crd, role: str, contract: Contract) -> bool:
    if role not in SWITCHABLE:
        return False
    there = mapping_of(_stored_schema(crd), "properties", "spec", "properties")
    return any(
        field.feature == CREDENTIALS_FEATURE
        and normalize(mapping_of(there, field.name)) == normalize(field.schema)
        for field in contract.types[role].spec.values()
    )


def describe_credentials(crds: Iterable[Crd], contract: Contract, with_fields: bool) -> Any:
    """Return the value for the key ``credentials``, or None if there are no identities.

    CRDs list neither the Secrets' keys, which the author has to add, nor the source kinds, so all
    possible kinds are included.
    """
    crds = tuple(crds)
    entries = [_identity(crd, crds, contract, with_fields) for crd in crds]
    return entries[0] if len(entries) == 1 else entries or None


def _identity(crd: Crd, identities: Iterable[Crd], contract: Contract, with_fields: bool) -> Any:
    fields = _identity_fields(crd)
    entry: dict[str, Any] = {"kind": crd.kind}
    if crd.scope != "Cluster":
        entry["namespaced"] = True
    if SECRET_REF not in fields:
        entry["secret"] = False
    known = {SECRET_REF, _ALLOWED}
    source = contract.types[IDENTITY].spec[SOURCE_REF].schema
    if SOURCE_REF in fields and normalize(fields[SOURCE_REF]) == normalize(source):
        entry["sources"] = [
            each.kind for each in identities if each.scope == "Cluster" or crd.scope != "Cluster"
        ]
        known.add(SOURCE_REF)
    spec = convert_fields(mapping_of(_stored_schema(crd), "properties", "spec"))
    own = {name: field for name, field in spec.items() if name not in known}
    if own and with_fields:
        entry["spec"] = own
    return entry if len(entry) > 1 else crd.kind


def _identity_fields(crd: Crd) -> Mapping[str, Any]:
    return mapping_of(_stored_schema(crd), "properties", "spec", "properties")


def _stored_schema(crd: Crd) -> Mapping[str, Any]:
    return next((each.schema for each in crd.versions if each.storage), {})
