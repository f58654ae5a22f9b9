"""provider.yaml as written: an optional key left out is None here, and decided in provider/.

What the keys mean together is checked when the description is resolved, not here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal, TypeVar, get_args

from pydantic import Field, Tag

from capsmith.provider_yaml import forms
from capsmith.provider_yaml.fields import (
    LIST,
    MAPPING,
    TEXT,
    Fields,
    Many,
    Part,
    one_of_two,
    text_mapping_or_list,
    text_or_mapping,
)
from capsmith.provider_yaml.kind_parts import ApiVersionLike, ContractVersion
from capsmith.provider_yaml.sections import (
    AddonKindSpec,
    BootstrapKindSpec,
    ControlPlaneKindSpec,
    InfrastructureKindSpec,
    KindSpec,
    PoolKindSpec,
    RuntimeExtensionSpec,
)

Section = Literal["infrastructure", "bootstrap", "controlPlane", "ipam", "addon"]
"""Keys under which kinds stand."""
ComponentSection = Literal[Section, "runtimeExtension"]


class CredentialsSpec(Part):
    """A kind of identities: which credentials are used for the infrastructure, and by whom."""

    kind: forms.Kind = Field(description="Such as AcmeIdentity.")
    keys: Annotated[Many[forms.SecretKey], Field(min_length=1)] | None = Field(
        None, description="Keys that the Secret must hold; [token] unless given."
    )
    namespaced: bool | None = Field(
        None,
        description="Whether identities are in the namespace of their clusters, with their "
        "Secrets; false by default: cluster-scoped, with allowedNamespaces, and with Secrets in "
        "the namespace of the manager.",
    )
    secret: bool | None = Field(
        None, description="Whether identities refer to a Secret; true by default."
    )
    spec: Fields | None = Field(None, description="Your fields in spec of the identity.")


class PolicyRuleSpec(Part):
    """One permission that the infrastructure code needs in the management cluster."""

    api_groups: Annotated[Many[forms.ApiGroupOrCore], Field(min_length=1)] = Field(
        description='API groups; "" is the core group.'
    )
    resources: Annotated[Many[forms.RbacResource], Field(min_length=1)] = Field(
        description="Plurals in lower case, subresources with a slash."
    )
    verbs: Annotated[Many[forms.RbacVerb], Field(min_length=1)] = Field(
        description="Such as get, list and watch."
    )
    resource_names: Many[forms.ObjectName] | None = Field(
        None, description="Only objects of these names."
    )


IdentityLike = Annotated[
    Annotated[forms.Kind, Tag(TEXT)] | Annotated[CredentialsSpec, Tag(MAPPING)],
    one_of_two(text_or_mapping, "a kind such as AcmeIdentity or a mapping {kind: …, keys: […]}"),
]
CredentialsLike = Annotated[
    Annotated[forms.Kind, Tag(TEXT)]
    | Annotated[CredentialsSpec, Tag(MAPPING)]
    | Annotated[Many[IdentityLike], Field(min_length=1), Tag(LIST)],
    one_of_two(
        text_mapping_or_list,
        "a kind such as AcmeIdentity, a mapping {kind: …, keys: […]}, or a list of these",
    ),
]


_KindSpec = TypeVar("_KindSpec", bound=KindSpec)
Kinds = Annotated[dict[forms.Kind, _KindSpec], Field(min_length=1)] | None


class ProviderSpec(Part):
    """Description of a Cluster API provider, from which capsmith generates its repository."""

    capsmith: Literal[1] = Field(description="Version of this format: 1.")
    name: forms.ProviderName = Field(
        description="Name that clusterctl knows: `clusterctl init --infrastructure acme`."
    )
    title: forms.Line | None = Field(None, description="Name for people.")
    description: forms.Text | None = Field(None, description="The purpose of the provider.")
    owner: forms.Line | None = Field(None, description="The copyright holder.")
    repository: forms.Repository = Field(
        description="Address of the repository that releases the provider."
    )
    image: forms.Image | None = Field(
        None, description="Image of the manager, without tag; derived from the repository."
    )
    licence: forms.Licence | None = Field(
        None, description="SPDX identifier; Apache-2.0 unless given."
    )
    package: forms.PackageName | None = Field(
        None, description="Python package; derived from the repository."
    )
    contracts: Annotated[Many[ContractVersion], Field(min_length=1)] = Field(
        description="Versions of Cluster API's contract that the provider serves."
    )
    api_versions: Annotated[Many[ApiVersionLike], Field(min_length=1)] | None = Field(
        None, description="Versions of the provider's own API; [v1alpha1] unless given."
    )
    releases: Annotated[dict[forms.Series, ContractVersion], Field(min_length=1)] = Field(
        description="Release series and the contract that each serves: {v0.1: v1beta2}."
    )
    groups: dict[Section, forms.Group] | None = Field(
        None, description="API groups; infrastructure.cluster.x-k8s.io and so on unless given."
    )
    namespaces: dict[ComponentSection, forms.Label] | None = Field(
        None, description="Namespaces of the managers; <name>-system and so on unless given."
    )
    components: dict[Section, Annotated[Many[Section], Field(min_length=1)]] | None = Field(
        None,
        description="Sections that clusterctl installs as one provider, with one manager, by the "
        "section that gives its type: {infrastructure: [infrastructure, controlPlane]}; each "
        "other section is a provider of its own.",
    )
    infrastructure: Kinds[InfrastructureKindSpec] = Field(
        None, description="Kinds of the infrastructure provider."
    )
    bootstrap: Kinds[BootstrapKindSpec] = Field(
        None, description="Kinds of the bootstrap provider."
    )
    control_plane: Kinds[ControlPlaneKindSpec] = Field(
        None, description="Kinds of the control plane provider."
    )
    ipam: Kinds[PoolKindSpec] = Field(None, description="Kinds of the IPAM provider.")
    addon: Kinds[AddonKindSpec] = Field(None, description="Kinds of the add-on provider.")
    runtime_extension: RuntimeExtensionSpec | None = Field(
        None, description="The runtime extension."
    )
    credentials: CredentialsLike | None = Field(
        None,
        description="Kind that names the Secret with the infrastructure's credentials, or several "
        "kinds of identities.",
    )
    rbac: Many[PolicyRuleSpec] | None = Field(
        None, description="Permissions that your code needs beyond the contract's."
    )
    sdk: forms.SdkName | None = Field(
        None,
        description="Import name of the infrastructure's SDK, whose client a new repository opens "
        "for each identity; dependencies has its requirement.",
    )
    dependencies: Many[forms.Requirement] | None = Field(
        None, description="Python requirements of your code."
    )
    dev_dependencies: Many[forms.Requirement] | None = Field(
        None, description="Python requirements of your tests, and of those who work on your code."
    )
    runtime: Literal["vendored", "package"] | None = Field(
        None,
        description="`vendored`: a copy of the runtime library in the repository (the default); "
        "`package`: a dependency on its distribution.",
    )
    blueprints: forms.Folder | None = Field(
        None, description="Folder of blueprints that replace or join capsmith's."
    )
    flavors: Many[forms.Label] | None = Field(
        None, description="Flavors of the cluster template; [topology] unless given."
    )
    cluster_classes: Many[forms.Label] | None = Field(
        None, description="ClusterClasses that are released; [<name>] unless given."
    )

    def has(self, section: ComponentSection) -> bool:
        """Return whether a section is in the file."""
        return getattr(self, _ATTRIBUTES[section]) is not None

    def section(self, name: Section) -> Mapping[str, KindSpec]:
        """Return the kinds of one section, none where it is left out."""
        kinds: Mapping[str, KindSpec] | None = getattr(self, _ATTRIBUTES[name])
        return kinds or {}

    def identities(self) -> Iterator[tuple[tuple[str | int, ...], str | CredentialsSpec]]:
        """Yield each kind of identities with its path."""
        written = self.credentials
        if isinstance(written, tuple):
            yield from ((("credentials", index), each) for index, each in enumerate(written))
        elif written is not None:
            yield ("credentials",), written

    def kinds(self) -> Iterator[tuple[Section, str, KindSpec]]:
        """Yield the section, name and description of every kind."""
        for section in SECTIONS:
            for kind, described in self.section(section).items():
                yield section, kind, described


SECTIONS: tuple[Section, ...] = get_args(Section)
_ATTRIBUTES: Mapping[str, str] = {
    field.alias or name: name for name, field in ProviderSpec.model_fields.items()
}
