"""A provider with a value for every setting, but with names that may still be invalid.

:mod:`capsmith.provider.derive` creates the draft, :mod:`capsmith.resolving.checks` checks it, and
:mod:`capsmith.provider.build` converts it to the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from capsmith.provider.model import GroupKind, Webhooks
from capsmith.provider.naming import pluralise
from capsmith.provider.sections import SectionType

if TYPE_CHECKING:
    from capsmith.provider_yaml.forms import FieldLike
    from capsmith.provider_yaml.model import HookSpec, KindSpec, ProviderSpec, Section

DEFAULT_API_VERSION = "v1alpha1"
CREDENTIALS_FEATURE = "credentials"
"""Feature of kinds with ``spec.identityRef``. For some roles, authors must enable it."""


class DraftVersion(NamedTuple):
    """One of the provider's API versions, before its name is validated."""

    name: str
    served: bool
    storage: bool
    contract: str
    """Contract version; empty if the provider has two and the author specifies neither."""
    deprecated: bool = False
    deprecation_warning: str = ""


class DraftKind(NamedTuple):
    """A kind described by the author, including its template, before its names are validated."""

    section: Section
    name: str
    spec: KindSpec
    known_features: frozenset[str]
    """Features in any contract version that the author may switch; empty if none is switched."""
    features: frozenset[str]
    """Enabled features in the provider's contract versions. ``credentials`` is included only if the
    author enables it.
    """
    short_names: tuple[str, ...]
    has_template: bool
    namespaced: bool
    """Whether the kind's objects are namespaced. The author may choose only for the role
    Resource."""
    machine_kind: str | None
    """Kind of a pool's machines; None if several kinds match and the author specifies none."""
    bootstrap: GroupKind | None
    """Kind of bootstrap configuration for a control plane's Machines; None if unknown or if the
    control plane has no Machines.
    """
    webhooks: Webhooks | None
    """Settings for webhooks that call the author's code; None if the kind has no webhooks."""
    group: str
    plural: str
    versions: tuple[DraftVersion, ...]
    template_versions: tuple[DraftVersion, ...]


class DraftHook(NamedTuple):
    """One of the runtime extension's hooks, before its names are validated."""

    hook: str
    name: str
    spec: HookSpec | None


class DraftIdentity(NamedTuple):
    """An identity kind, before its names are validated."""

    kind: str
    keys: tuple[str, ...]
    """Keys that the identity's Secrets must have; empty if the kind does not refer to a Secret."""
    namespaced: bool
    secret: bool
    """Whether the identity refers to a Secret."""
    sources: tuple[str, ...]
    """Kinds of identities that an identity of this kind may be derived from."""
    fields: Mapping[str, FieldLike]
    path: tuple[str | int, ...]
    """Path to the identity's entry in provider.yaml."""
    kind_path: tuple[str | int, ...]
    """Path to the identity's kind name in provider.yaml."""


class Draft(NamedTuple):
    """A provider with a value for every setting, but with names that may still be invalid."""

    spec: ProviderSpec
    title: str
    description: str
    owner: str
    licence: str
    repository_path: tuple[str, ...]
    """Segments of the repository URL's path: organisation and name."""
    distribution: str
    package: str
    environment_prefix: str
    image: str
    sections: tuple[SectionType, ...]
    """Sections that the author wrote, in component order."""
    components: tuple[tuple[SectionType, ...], ...]
    """The sections that form each component. The first section determines the component's type."""
    groups: Mapping[str, str]
    """Each section's API group, including sections missing from provider.yaml; empty for a section
    that cannot have kinds.
    """
    namespaces: Mapping[str, str]
    """Each section's namespace, including sections missing from provider.yaml."""
    kinds: tuple[DraftKind, ...]
    machine_kinds: tuple[str, ...]
    """Names of the kinds that implement InfraMachine."""
    api_versions: tuple[DraftVersion, ...]
    """API versions, in the author's order."""
    series: tuple[str, ...]
    """Release series, newest first."""
    identities: tuple[DraftIdentity, ...]
    hooks: tuple[DraftHook, ...]
    flavors: tuple[str, ...]
    cluster_classes: tuple[str, ...]
    kubectl_names: frozenset[str]
    """Singular and plural names of all kinds, including templates and identities."""

    def kinds_of(self, section: str) -> tuple[DraftKind, ...]:
        """Return the kinds described in a section."""
        return tuple(kind for kind in self.kinds if kind.section == section)

    def find_plural(self, group: str, kind: str) -> str:
        """Return the plural of any kind: the author's choice for own kinds, or the usual one."""
        own = (each.plural for each in self.kinds if (each.group, each.name) == (group, kind))
        return next(own, None) or pluralise(kind.lower())
