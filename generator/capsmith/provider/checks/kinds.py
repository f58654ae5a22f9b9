"""The kinds: names that do not clash, roles that are filled, features that exist."""

from __future__ import annotations

import keyword
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from capsmith.contract.model import Contract
from capsmith.provider import derive
from capsmith.provider.checks.columns import check_columns
from capsmith.provider.checks.control_planes import check_control_planes
from capsmith.provider.checks.fields import check_fields
from capsmith.provider.checks.pools import check_pools
from capsmith.provider.checks.sections import check_sections
from capsmith.provider.naming import attribute, pluralise
from capsmith.safetext import DnsLabel, DnsSubdomain, KindName
from capsmith.spec.compose import Path
from capsmith.spec.place import Place
from capsmith.spec.quote import did_you_mean, shown

if TYPE_CHECKING:
    from capsmith.spec.model import ProviderSpec
    from capsmith.spec.sections import KindSpec

_RESERVED = """
    Cluster ClusterClass Machine MachinePool InfraCluster InfraMachine InfraMachinePool
    BootstrapConfig ControlPlane IPPool GlobalIPPool IPAddress IPAddressClaim Addon Identity Secret
"""
_CORE_SHORT_NAMES = """
    cl cc ma md ms mp mhc mhs crs crsb po svc no ns cm sa deploy ds rs sts ing pv pvc ev ep crd
    crds cs quota limits rc csr hpa cj netpol pdb pc sc
"""
_FINALIZER_LIMIT = 63


def check_kinds(spec: ProviderSpec, contracts: Mapping[str, Contract], top: Place) -> None:
    """Ids CRD-02, CRD-04, TP-02, ``kind-*``, ``short-name-*``, ``feature-unknown`` and below."""
    check_sections(spec, top)
    _clashes(spec, top)
    _short_names(spec, top)
    for kind, path in named_kinds(spec):
        _name(kind, spec, top.at(*path))
    served_first = sorted(contracts, key=lambda version: (version not in spec.contracts, version))
    known = [contracts[version] for version in served_first]
    for section, kind, described in spec.kinds():
        here = top.at(section, kind)
        _features(described, known, here)
        check_fields(spec, described, known, here)
        check_columns(described, known, here)
    check_pools(spec, contracts, top)
    check_control_planes(spec, top)


def named_kinds(spec: ProviderSpec) -> Iterator[tuple[str, Path]]:
    """The kinds that the author names, and where."""
    for section, kind, _ in spec.kinds():
        yield kind, (section, kind)
    identity = derive.credentials_kind(spec)
    if identity is not None:
        yield identity, (
            ("credentials",)
            if isinstance(spec.credentials, str)
            else (
                "credentials",
                "kind",
            )
        )


def _name(kind: str, spec: ProviderSpec, place: Place) -> None:
    for suffix in ("Template", "List"):
        if kind.endswith(suffix):
            message = f"a kind cannot end in {suffix}: that name is derived from another kind"
            place.error_at_key("TP-02", message, f"write {shown(kind.removesuffix(suffix))}")
    if kind in _RESERVED.split() or keyword.iskeyword(kind):
        message = f"{shown(kind)} is a name of Cluster API, Kubernetes or Python"
        place.error_at_key("kind-reserved", message, f"prefix it: {shown('Acme' + kind)}")
    identity = place.path[0] == "credentials"
    section = "infrastructure" if identity else str(place.path[0])
    suffix = "List" if identity else derive.LONGEST_KIND_SUFFIX
    if len(kind) + len(suffix) > KindName.limit:
        longest = KindName.limit - len(suffix)
        message = f"{shown(kind + suffix)} would have more than {KindName.limit} characters"
        place.error_at_key("CRD-04", message, f"use at most {longest} characters")
        return
    group, plural = derive.group(spec, section), pluralise(kind.lower())
    if len(plural) > DnsLabel.limit or len(plural) + len("templates.") + len(group) > 253:
        message = f"the CRD's name `<plural>.<group>` would have more than {DnsSubdomain.limit}"
        place.error_at_key("CRD-02", f"{message} characters", "shorten the kind or the group")
    if len(kind) + 1 + len(group) > _FINALIZER_LIMIT:
        message = f"the finalizer `<kind>.<group>` would have more than {_FINALIZER_LIMIT}"
        place.error_at_key("IC-21", f"{message} characters", "shorten the kind or the group")


def _clashes(spec: ProviderSpec, top: Place) -> None:
    taken: dict[str, tuple[str, Path]] = {}
    for kind, path in named_kinds(spec):
        place = top.at(*path)
        for name in (kind.lower(), pluralise(kind.lower()), str(attribute(kind))):
            other, there = taken.setdefault(name, (kind, path))
            if other != kind:
                message = f"{shown(kind)} and {shown(other)} would both be {shown(name)}"
                place.error_at_key("kind-clash", message, "choose names that differ more")
                break
            if there != path and path[0] != "credentials":
                message = f"{shown(kind)} is a kind of {there[0]} already"
                place.error_at_key("kind-clash", message, "choose another name")
                break
        if path[0] == "credentials" and any(kind == other for _, other, _ in spec.kinds()):
            message = f"{shown(kind)} is a kind of the infrastructure already"
            place.error("kind-clash", message, "name another kind for the credentials")


def _short_names(spec: ProviderSpec, top: Place) -> None:
    taken = derive.kubectl_names(spec)
    for section, kind, described in spec.kinds():
        for index, name in enumerate(described.short_names or ()):
            here = top.at(section, kind, "shortNames", index)
            if name in taken:
                message = f"{shown(name)} is the name of a kind, or of another short name"
                here.error("short-name-clash", message, "choose another")
            elif name in _CORE_SHORT_NAMES.split():
                message = f"{shown(name)} is a short name of Kubernetes or Cluster API"
                here.warning("short-name-taken", message, "choose another: kubectl picks one")
            taken.add(name)


def _features(described: KindSpec, contracts: list[Contract], place: Place) -> None:
    known = derive.known_features(described.implements, contracts)
    for name in described.features or {}:
        if name == derive.DERIVED_FEATURE:
            hint = "leave it out here and use the key `credentials` at the top"
            message = f"{shown(name)} follows from the kind that holds the credentials"
            place.error_at_key("feature-unknown", message, hint, "features", name)
        elif name not in known:
            message = f"{described.implements} has no feature {shown(name)}"
            hint = did_you_mean(name, known)
            place.error_at_key("feature-unknown", message, hint, "features", name)
