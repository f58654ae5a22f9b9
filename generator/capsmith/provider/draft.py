"""A provider with everything decided, as plain strings that may still be invalid.

:mod:`capsmith.provider.derive` creates the draft, :mod:`capsmith.resolving.checks` checks it, and
:mod:`capsmith.provider.build` converts it to the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from capsmith.provider.model import GroupKind, Webhooks
from capsmith.provider.sections import SectionType

if TYPE_CHECKING:
    from capsmith.provider_yaml.forms import FieldLike
    from capsmith.provider_yaml.model import (
        HookSpec,
        KindSpec,
        ProviderSpec,
        Section,
    )

DEFAULT_API_VERSION = "v1alpha1"
CREDENTIALS_FEATURE = "credentials"
"""The feature that follows from the key ``credentials``; an author does not switch it."""


class DraftVersion(NamedTuple):
    """An API version of the provider."""

    name: str
    served: bool
    storage: bool
    contract: str
    """Empty where two contracts are followed and the author names neither."""
    deprecated: bool = False
    deprecation_warning: str = ""


class DraftKind(NamedTuple):
    """A kind that the author describes, including its template."""

    section: Section
    name: str
    spec: KindSpec
    known_features: frozenset[str]
    """What the author may switch, in any contract; empty where nothing is switched."""
    features: frozenset[str]
    """What is on in the contracts of the provider, but for the credentials."""
    short_names: tuple[str, ...]
    has_template: bool
    namespaced: bool
    """The author's choice, which only a kind that implements Resource has."""
    machine_kind: str | None
    """The kind of the machines of a pool; None where several fit and none is named."""
    bootstrap: GroupKind | None
    """The kind of the bootstrap configurations of a control plane with machines, if it is known."""
    webhooks: Webhooks | None
    """Validation and defaults by the author's code, if the kind has them."""
    group: str
    plural: str
    versions: tuple[DraftVersion, ...]
    template_versions: tuple[DraftVersion, ...]


class DraftHook(NamedTuple):
    """A hook of the runtime extension."""

    hook: str
    name: str
    spec: HookSpec | None


class DraftIdentity(NamedTuple):
    """A kind of identity."""

    kind: str
    keys: tuple[str, ...]
    """The required keys of its Secrets; empty if it refers to none."""
    namespaced: bool
    secret: bool
    """Whether it refers to a Secret."""
    fields: Mapping[str, FieldLike]
    path: tuple[str | int, ...]
    """Its place in the description."""
    kind_path: tuple[str | int, ...]
    """The place of its name."""


class Draft(NamedTuple):
    """A provider before its checks."""

    spec: ProviderSpec
    title: str
    description: str
    owner: str
    licence: str
    repository_path: tuple[str, ...]
    """The segments of the repository's address: organisation and name."""
    distribution: str
    package: str
    environment_prefix: str
    image: str
    sections: tuple[SectionType, ...]
    """The sections that the author has written, in the order of components."""
    components: tuple[tuple[SectionType, ...], ...]
    """The written sections of each component; the first one gives its type."""
    groups: Mapping[str, str]
    """The API group of each section, written or not; empty where it has no kinds."""
    namespaces: Mapping[str, str]
    """The namespace of each section, written or not."""
    kinds: tuple[DraftKind, ...]
    machine_kinds: tuple[str, ...]
    """The kinds that implement InfraMachine."""
    api_versions: tuple[DraftVersion, ...]
    """In the author's order."""
    series: tuple[str, ...]
    """The release series, the newest first."""
    identities: tuple[DraftIdentity, ...]
    hooks: tuple[DraftHook, ...]
    flavors: tuple[str, ...]
    cluster_classes: tuple[str, ...]
    kubectl_names: frozenset[str]
    """Singulars and plurals of all kinds, templates and identities included."""

    def kinds_of(self, section: str) -> tuple[DraftKind, ...]:
        """Return the kinds of one section."""
        return tuple(kind for kind in self.kinds if kind.section == section)
