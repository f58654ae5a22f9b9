"""What follows from what the author wrote, as plain text: nothing here is known to be valid yet.

:mod:`capsmith.provider.checks` looks whether the results can be used, and
:mod:`capsmith.provider.build` makes them safe.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from capsmith.provider.naming import pluralise, words
from capsmith.provider.sections import SECTION_TYPES, SectionType

if TYPE_CHECKING:
    from capsmith.contract.model import Contract
    from capsmith.spec.model import ProviderSpec
    from capsmith.spec.sections import KindSpec

DEFAULT_API_VERSION = "v1alpha1"
DEFAULT_KEYS = ("token",)
DERIVED_FEATURE = "credentials"
"""The feature that follows from ``credentials``; an author does not switch it."""
OFF_UNLESS_ASKED = frozenset(
    {"interruptible", "capacity", "addressesFromPools", "externalManagedControlPlane"}
)
MANAGED = "externalManagedControlPlane"
"""The feature that makes a control plane one without machines (CP-25)."""
_OFF_BY_SHAPE = {
    # The InfraCluster gives the endpoint of machines, the control plane itself that of a service.
    ("ControlPlane", False): frozenset({"controlPlaneEndpoint"}),
    ("ControlPlane", True): frozenset({"machines", "replicas", "rolloutAfter"}),
    ("InfraMachinePool", False): frozenset({"machines"}),
}
"""(role, managed) -> features that are off unless asked for."""
LONGEST_KIND_SUFFIX = "TemplateList"
_REGISTRIES = {"github.com": "ghcr.io", "gitlab.com": "registry.gitlab.com"}
_SHORT = {
    "InfraCluster": ("Cluster", "cl"),
    "InfraMachine": ("Machine", "m"),
    "InfraMachinePool": ("MachinePool", "mp"),
    "BootstrapConfig": ("Config", "c"),
    "ControlPlane": ("ControlPlane", "cp"),
}


def repository_path(repository: str) -> list[str]:
    """Segments of the path of the repository's address: organisation and name."""
    return [segment for segment in urlsplit(repository).path.split("/") if segment]


def distribution(spec: ProviderSpec) -> str:
    """Name of the Python distribution: the last segment of the repository, as a label."""
    return re.sub(r"[^a-z0-9]+", "-", repository_path(spec.repository)[-1].lower()).strip("-")


def package(spec: ProviderSpec) -> str:
    """Name of the Python package."""
    return spec.package or distribution(spec).replace("-", "_")


def image(spec: ProviderSpec) -> str:
    """Name of the manager's image, without tag (MG-10)."""
    if spec.image is not None:
        return spec.image
    host = urlsplit(spec.repository).netloc.lower()
    organisation = "/".join(repository_path(spec.repository)[:-1]).lower()
    name = f"cluster-api-{spec.name}-controller"
    if host == "gitlab.com":
        organisation = "/".join(repository_path(spec.repository)).lower()
    return f"{_REGISTRIES.get(host, host)}/{organisation}/{name}"


def group(spec: ProviderSpec, section: str) -> str:
    """API group of a section's kinds."""
    given = (group for where, group in (spec.groups or {}).items() if where == section)
    return next(given, SECTION_TYPES[section].group)


def namespace(spec: ProviderSpec, section: str) -> str:
    """Namespace of a section's manager; cluster-scoped names begin with it (CC-31)."""
    given = (name for where, name in (spec.namespaces or {}).items() if where == section)
    return next(given, SECTION_TYPES[section].namespace.format(name=spec.name))


def sections(spec: ProviderSpec) -> list[SectionType]:
    """The sections that the author has written, in the order of components."""
    return [section for section in SECTION_TYPES.values() if spec.has(section.section)]


def environment_prefix(name: str) -> str:
    """``acme-cloud`` -> ``ACME_CLOUD``."""
    text = name.upper().replace("-", "_")
    return f"_{text}" if text[0].isdigit() else text


def credentials_kind(spec: ProviderSpec) -> str | None:
    """The identity kind, if there is one."""
    if spec.credentials is None or isinstance(spec.credentials, str):
        return spec.credentials
    return spec.credentials.kind


def short_name(kind: str, implements: str) -> str | None:
    """``AcmeMachine`` -> ``acmem``; None where no habit says how (CRD-10)."""
    if implements not in _SHORT:
        return None
    suffix, short = _SHORT[implements]
    stem = kind.removesuffix(suffix).lower()
    return stem + short if kind.endswith(suffix) and stem else None


def kubectl_names(spec: ProviderSpec) -> set[str]:
    """Singulars and plurals of all kinds, templates and the identity included."""
    kinds = [
        name
        for _, kind, described in spec.kinds()
        for name in ((kind, f"{kind}Template") if has_template(described.implements) else (kind,))
    ]
    identity = credentials_kind(spec)
    lower = [kind.lower() for kind in (*kinds, *((identity,) if identity else ()))]
    return {name for kind in lower for name in (kind, pluralise(kind))}


def has_template(implements: str) -> bool:
    """Whether kinds of a role come with a template kind (CRD-07)."""
    return implements not in ("IPPool", "GlobalIPPool", "Addon")


def features(described: KindSpec, contracts: list[Contract]) -> set[str]:
    """The features of a kind: what the author switched, otherwise what its shape says."""
    switched = described.features or {}
    managed = switched.get(MANAGED, False)
    off = OFF_UNLESS_ASKED | _OFF_BY_SHAPE.get((described.implements, managed), frozenset())
    known = known_features(described.implements, contracts)
    return {feature for feature in known if switched.get(feature, feature not in off)}


def known_features(role: str, contracts: list[Contract]) -> set[str]:
    """Features of a role and its template that an author may switch."""
    shapes = [
        contract.types[name]
        for contract in contracts
        for name in (role, f"{role}Template")
        if name in contract.types
    ]
    fields = [f for shape in shapes for f in (*shape.spec.values(), *shape.status.values())]
    return {field.feature for field in fields} - {"", DERIVED_FEATURE}


@dataclass(frozen=True, slots=True)
class Versioned:
    """One API version, as far as the author's words decide it."""

    name: str
    served: bool
    storage: bool
    contract: str
    """Empty where the author has to say it, and has not."""


def api_versions(spec: ProviderSpec) -> list[Versioned]:
    """The API versions, in the author's order."""
    only = spec.contracts[0] if len(set(spec.contracts)) == 1 else ""
    given = spec.api_versions or (DEFAULT_API_VERSION,)
    plain = [
        (
            (v, True, None, only)
            if isinstance(v, str)
            else (v.name, v.served is not False, v.storage, v.contract or only)
        )
        for v in given
    ]
    newest = ""
    if not any(storage is not None for _, _, storage, _ in plain):
        newest = max((name for name, _, _, _ in plain), key=version_order)
    return [
        Versioned(name, served, bool(storage) or name == newest, contract)
        for name, served, storage, contract in plain
    ]


def version_order(name: str) -> tuple[int, int, int]:
    """Sort key of Kubernetes: GA before beta before alpha, then by number (GEN-03)."""
    major, *stage = re.findall(r"alpha|beta|\d+", name)
    if not stage:
        return 2, int(major), 0
    return int(stage[0] == "beta"), int(major), int(stage[1])


def series_order(series: str) -> tuple[int, int]:
    """Major and minor of ``v0.1``."""
    major, minor = series.removeprefix("v").split(".")
    return int(major), int(minor)


def default_title(name: str) -> str:
    """``acme-cloud`` -> ``Acme Cloud``."""
    return " ".join(word[:1].upper() + word[1:] for word in words(name))
