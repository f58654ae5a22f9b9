"""References between a provider's kinds, Cluster API's kinds, and other kinds that they name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from capsmith.output.identities import CREDENTIALS, IDENTITY_REF
from capsmith.provider.model import SECRET_REF, Provider, Resource, Role
from capsmith.safetext import FieldPath, KindName, SafeText

_ADDRESSES: Final = "addressesFromPools"


class Relation(NamedTuple):
    """A reference from objects of one kind to objects of another kind."""

    source: KindName
    """Kind that contains the reference."""
    target: KindName
    """Kind that the reference points to."""
    fields: tuple[FieldPath, ...]
    """Paths of the referring fields in the source kind; empty if it only owns the target."""
    is_owner: bool = False
    """Whether the source object becomes an owner of the target object, and is deleted after it."""


def list_relations(provider: Provider) -> tuple[Relation, ...]:
    """Return all references from and to the provider's kinds, one for each pair of kinds.

    Paths in Cluster API's kinds are those in the provider's newest contract version.
    """
    pairs: dict[tuple[KindName, KindName], Relation] = {}
    for resource in provider.resources:
        for new in (
            *_list_references_to(provider, resource),
            *_list_references_from(provider, resource),
        ):
            known = pairs.get(new[:2], Relation(new.source, new.target, ()))
            fields = tuple(dict.fromkeys((*known.fields, *new.fields)))
            is_owner = known.is_owner or new.is_owner
            pairs[new[:2]] = Relation(new.source, new.target, fields, is_owner)
    return tuple(pairs.values())


def draw_relations(provider: Provider) -> Iterator[SafeText]:
    """Yield the lines of a Mermaid graph: the provider's kinds with their roles, API versions and
    contracts, and all references from and to them.

    A thick arrow leads to an object that the referring object owns.
    """
    yield SafeText("graph LR")
    yield SafeText("  classDef own fill:#f6c177,stroke:#9a5b00,color:#1f1300")
    for resource in provider.resources:
        versions = (f"{each.name}: contract {each.contract.version}" for each in resource.versions)
        label = "<br>".join((resource.kind, resource.role.value, *versions))
        yield SafeText(f'  {resource.kind}["{label}"]:::own')
    for relation in list_relations(provider):
        arrow = "==>" if relation.is_owner else "-.->"
        fields = f'|"{"<br>".join(relation.fields)}"|' if relation.fields else ""
        yield SafeText(f"  {relation.source} {arrow}{fields} {relation.target}")


def describe_kind(provider: Provider, resource: Resource) -> dict[str, Any]:
    """Return a kind's role, versions and references as plain data, for ``capsmith explain``."""
    relations = list_relations(provider)
    return {
        "kind": str(resource.kind),
        "role": str(resource.role),
        "description": resource.description,
        "provider": _find_label(provider, resource),
        "crd": str(resource.crd_name),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "versions": [
            {
                "version": str(version.name),
                "contract": version.contract.version,
                "stored": version.storage,
                "served": version.served,
            }
            for version in resource.versions
        ],
        "referredToBy": [
            _describe(each.source, each) for each in relations if each.target == resource.kind
        ],
        "refersTo": [
            _describe(each.target, each) for each in relations if each.source == resource.kind
        ],
    }


def _describe(kind: KindName, relation: Relation) -> dict[str, Any]:
    fields = [str(field) for field in relation.fields]
    return {"kind": str(kind), "fields": fields, "owner": relation.is_owner}


def format_kind(kind: Mapping[str, Any]) -> list[str]:
    """Format the result of :func:`describe_kind` as lines for a terminal."""
    scope = "namespaced" if kind["scope"] == "Namespaced" else "cluster-scoped"
    return [
        f"{kind['kind']}  {kind['role']} of {kind['provider']}, {scope}",
        *([f"  {kind['description']}"] if kind["description"] else []),
        f"  API versions of {kind['crd']}",
        *(f"    {_format_version(version)}" for version in kind["versions"]),
        *_format_references("Referred to by", kind["referredToBy"], " (its owner)"),
        *_format_references("Refers to", kind["refersTo"], " (owned by it)"),
    ]


def _format_version(version: Mapping[str, Any]) -> str:
    words = [f"contract {version['contract']}"]
    words += ["stored"] if version["stored"] else []
    words += [] if version["served"] else ["not served"]
    return f"{version['version']}: {', '.join(words)}"


def _format_references(
    title: str, references: Sequence[Mapping[str, Any]], owner: str
) -> Iterator[str]:
    if references:
        yield f"  {title}"
    for reference in references:
        fields = f": {', '.join(reference['fields'])}" if reference["fields"] else ""
        yield f"    {reference['kind']}{fields}{owner if reference['owner'] else ''}"


def _find_label(provider: Provider, resource: Resource) -> str:
    return next(str(each.label) for each in provider.components if resource in each.resources)


def _list_references_to(provider: Provider, resource: Resource) -> Iterator[Relation]:
    """Yield the references of Cluster API's kinds to a kind of the provider."""
    contract = provider.contracts[0]
    for reference in contract.references:
        if reference.role != resource.role:
            continue
        path = reference.fields.get(contract.version)
        fields = (FieldPath(path),) if path is not None else ()
        for source in _find_sources(provider, reference.source):
            yield Relation(source, resource.kind, fields, reference.is_owner)


def _find_sources(provider: Provider, kind: str) -> list[KindName]:
    """Return the kinds that ``kind`` stands for: the provider's control planes, or itself."""
    if kind != Role.CONTROL_PLANE:
        return [KindName(kind)]
    own = [each.kind for each in provider.resources if each.role is Role.CONTROL_PLANE]
    return own or [KindName("KubeadmControlPlane")]


def _list_references_from(provider: Provider, resource: Resource) -> Iterator[Relation]:
    """Yield the references of a kind of the provider."""
    kind = resource.kind
    if resource.role.is_template:
        content = KindName(kind.removesuffix("Template"))
        yield Relation(kind, content, (FieldPath("spec.template"),))
        return
    if CREDENTIALS in resource.features:
        for identity in provider.identities:
            yield Relation(kind, identity.kind, (FieldPath(f"spec.{IDENTITY_REF}"),))
    if SECRET_REF in resource.features:
        yield Relation(kind, KindName("Secret"), (FieldPath(f"spec.{SECRET_REF}"),))
    if _ADDRESSES in resource.features:
        claims = KindName("IPAddressClaim")
        yield Relation(kind, claims, (FieldPath(f"spec.{_ADDRESSES}"),), is_owner=True)
    if resource.machine_kind is not None:
        yield Relation(kind, resource.machine_kind, (), is_owner=True)
    if resource.bootstrap is not None:
        yield Relation(kind, KindName("Machine"), (), is_owner=True)
    for watch in resource.watches:
        if watch.path:
            yield Relation(kind, watch.kind, (FieldPath(".".join(watch.path)),))
