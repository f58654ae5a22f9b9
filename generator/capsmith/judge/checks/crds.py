"""Check CRDs: names, scope, metadata, pools' machine kinds, and CRDs that only core may ship."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from capsmith.judge.checks.registry import Context, Violation, check
from capsmith.manifests.bundle import Artefact
from capsmith.manifests.crds import find_field
from capsmith.provider.naming import pluralise

_KIND = re.compile(r"[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?")
_GROUP = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_TEMPLATE = "Template"


@dataclass(frozen=True, slots=True)
class RequiredScope:
    """The scope that a kind must have, for the check ``crd-scope``."""

    scope: str


@check("crd-scope", RequiredScope)
def check_crd_scope(context: Context, params: RequiredScope) -> Iterator[Violation]:
    """CRD-01, ER-03: The kind has the scope in which core looks for its objects."""
    for crd in context.crds():
        if crd.scope != params.scope:
            yield Violation(
                crd.manifest,
                f"{crd.kind}: scope is {crd.scope!r}; expected {params.scope!r}",
                path=("spec", "scope"),
            )


@dataclass(frozen=True, slots=True)
class OptOut:
    """An annotation that exempts a CRD from the check ``crd-name``."""

    unless_annotated: str


_BY_VERSION = frozenset({"Remediation", "RemediationTemplate"})
"""Roles of kinds that core finds by the version in a reference, without their CRDs (ER-09)."""


@check("crd-name", OptOut)
def check_crd_name(context: Context, params: OptOut) -> Iterator[Violation]:
    """CRD-02: The CRD has the name that core derives from kind and group, with flect's plural."""
    for crd in context.bundle.crds:
        # The annotation only disables a check of clusterctl.  Core computes the names of contract
        # kinds regardless of the annotation.
        computed = crd.role in context.contract.types and crd.role not in _BY_VERSION
        if params.unless_annotated in crd.annotations and not computed:
            continue
        plural = pluralise(crd.kind.lower())
        if crd.manifest.name != f"{plural}.{crd.group}":
            yield Violation(
                crd.manifest,
                f"{crd.kind}: the CRD is named {crd.manifest.name!r}; "
                f"expected '{plural}.{crd.group}'",
                path=("metadata", "name"),
            )
        elif crd.plural != plural:
            yield Violation(
                crd.manifest,
                f"{crd.kind}: plural is {crd.plural!r}; expected {plural!r}",
                path=("spec", "names", "plural"),
            )


@dataclass(frozen=True, slots=True)
class Length:
    """The maximum length in characters, for the checks ``crd-kind`` and ``crd-group``."""

    longest: int


@check("crd-kind", Length)
def check_crd_kind(context: Context, params: Length) -> Iterator[Violation]:
    """CRD-04: The kind has valid characters and leaves room for the suffix ``Template``.

    Letters, digits and hyphens are valid.  The list kind, if set, must be the kind followed by
    ``List``.
    """
    for crd in context.crds():
        plain = crd.kind.removesuffix(_TEMPLATE)
        length = len(plain + _TEMPLATE)
        if not _KIND.fullmatch(crd.kind):
            yield Violation(
                crd.manifest,
                f"kind {crd.kind!r} can only contain letters, digits and -",
                path=("spec", "names", "kind"),
            )
        elif length > params.longest:
            yield Violation(
                crd.manifest,
                f"kind {plain}{_TEMPLATE} has {length} characters; at most {params.longest}",
                path=("spec", "names", "kind"),
            )
        expected = f"{crd.kind}List"
        found = crd.manifest.mapping("spec", "names").get("listKind", expected)
        if found != expected:
            yield Violation(
                crd.manifest,
                f"{crd.kind}: listKind is {found!r}; expected {expected!r}",
                path=("spec", "names", "listKind"),
                # Core and clusterctl read lists by their kind alone.
                harmless=True,
            )


@check("crd-group", Length)
def check_crd_group(context: Context, params: Length) -> Iterator[Violation]:
    """CRD-05: The API group is a DNS subdomain."""
    for crd in context.crds():
        if not _GROUP.fullmatch(crd.group):
            yield Violation(
                crd.manifest,
                f"{crd.kind}: group {crd.group!r} is not a DNS subdomain",
                path=("spec", "group"),
            )
        elif len(crd.group) > params.longest:
            yield Violation(
                crd.manifest,
                f"{crd.kind}: the group has {len(crd.group)} characters; at most {params.longest}",
                path=("spec", "group"),
            )


@check("crd-status-subresource")
def check_crd_status_subresource(context: Context) -> Iterator[Violation]:
    """CRD-06: The status is a subresource."""
    for crd, version in context.versions():
        if "status" not in version.subresources:
            yield Violation(
                crd.manifest,
                f"{crd.kind} {version.name}: subresources has no status",
                path=(*crd.schema_path(version.name)[:3], "subresources"),
            )


@dataclass(frozen=True, slots=True)
class Category:
    """A category that ``kubectl get`` accepts in place of a kind."""

    category: str


@check("crd-category", Category)
def check_crd_category(context: Context, params: Category) -> Iterator[Violation]:
    """CRD-10: The kind belongs to the category that ``kubectl get cluster-api`` lists."""
    for crd in context.crds():
        if params.category not in crd.manifest.listing("spec", "names", "categories"):
            yield Violation(
                crd.manifest,
                f"{crd.kind}: categories has no {params.category!r}",
                path=("spec", "names", "categories"),
            )


@dataclass(frozen=True, slots=True)
class RoleColumns:
    """Printer columns that the kinds of one role should have."""

    role: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Columns:
    """The usual printer columns of each role, for the check ``crd-printer-columns``."""

    columns: tuple[RoleColumns, ...]


@check("crd-printer-columns", Columns)
def check_crd_printer_columns(context: Context, params: Columns) -> Iterator[Violation]:
    """CRD-11: The kind has the usual printer columns."""
    by_role = {entry.role: entry.names for entry in params.columns}
    for crd, version in context.versions():
        missing = [name for name in by_role.get(crd.role, ()) if name not in version.columns]
        if missing:
            yield Violation(
                crd.manifest,
                f"{crd.kind} {version.name}: no printer column {', '.join(missing)}",
                path=(*crd.schema_path(version.name)[:3], "additionalPrinterColumns"),
            )


@dataclass(frozen=True, slots=True)
class Label:
    """A label that a CRD must have, with any value, for the check ``crd-label``."""

    label: str
    """Key of the label."""
    otherwise: str = ""
    """Key of a label that may be used instead."""


@check("crd-label", Label)
def check_crd_label(context: Context, params: Label) -> Iterator[Violation]:
    """MV-03, IP-11: The CRD has a label that applies to all objects of its kind."""
    for crd in context.crds():
        if not {params.label, params.otherwise} & set(crd.labels):
            yield Violation(
                crd.manifest,
                f"{crd.kind}: the CRD has no label {params.label}",
                path=("metadata", "labels"),
            )


@dataclass(frozen=True, slots=True)
class MachineKind:
    """The field in which a pool names its machine kind, and the role of that kind."""

    path: str
    """Path to the field in which a pool names its machine kind."""
    role: str
    """Role that the machine kind must have."""


@check("pool-machine-kind", MachineKind)
def check_pool_machine_kind(context: Context, params: MachineKind) -> Iterator[Violation]:
    """MP-11: A pool's machine kind is served in the pool's group and version, as core expects."""
    for crd, version in context.versions():
        if find_field(version.schema, params.path) is None:
            continue
        machines = [
            other.kind
            for other in context.bundle.crds
            if other.role == params.role
            and other.group == crd.group
            and any(v.name == version.name and v.served for v in other.versions)
        ]
        if not machines:
            yield Violation(
                crd.manifest,
                f"{crd.kind} {version.name}: {params.path} is declared, but no {params.role} of "
                f"{crd.group} serves {version.name}",
                path=crd.schema_path(version.name, params.path),
            )


@dataclass(frozen=True, slots=True)
class CoreCrds:
    """CRDs that core ships, and the CRD whose presence shows that a bundle is core itself."""

    names: tuple[str, ...]
    """Names of the CRDs that core ships."""
    owner: str
    """Name of the CRD whose presence shows that a bundle is core itself."""


@check("crd-not-shipped", CoreCrds)
def check_crd_not_shipped(context: Context, params: CoreCrds) -> Iterator[Violation]:
    """IP-01: A provider does not ship CRDs that core ships."""
    crds = [
        manifest
        for manifest in context.bundle.files(Artefact.COMPONENTS)
        if manifest.kind == "CustomResourceDefinition"
    ]
    if any(crd.name == params.owner for crd in crds):
        return
    for crd in crds:
        if crd.name in params.names:
            yield Violation(crd, f"{crd} is shipped by core", path=("metadata", "name"))
