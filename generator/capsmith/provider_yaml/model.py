"""The pydantic model of provider.yaml: the keys that an author may write.

An optional key that is left out is None here.  :mod:`capsmith.provider.derive` chooses its value,
and :mod:`capsmith.resolving` checks keys against each other.  The model is one file so that the
format can be read from top to bottom; ``capsmith schema`` prints it as JSON Schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import Field, Tag

from capsmith.provider_yaml import forms
from capsmith.provider_yaml.forms import (
    FLAG,
    LIST,
    MAPPING,
    TEXT,
    Count,
    FieldLike,
    Fields,
    Many,
    NameLimits,
    SpecModel,
    Validation,
    choose_by_tag,
    classify_flag_or_mapping,
    classify_text_mapping_or_list,
    classify_text_or_mapping,
)

ContractVersion = Literal["v1beta1", "v1beta2"]


class ApiVersionSpec(SpecModel):
    """One version of the provider's API."""

    name: forms.Version = Field(description="Such as v1alpha1.")
    served: bool | None = Field(None, description="Whether it is served; true by default.")
    storage: bool | None = Field(
        None, description="Whether it is the storage version; by default the newest is."
    )
    contract: ContractVersion | None = Field(
        None,
        description="The contract that its shape follows; needed where `contracts` names two.",
    )
    deprecated: bool | None = Field(
        None, description="Whether the API server warns everyone who uses it; false by default."
    )
    deprecation_warning: forms.Warning | None = Field(
        None, description="The text of the warning; the API server has one of its own."
    )


ApiVersionLike = Annotated[
    Annotated[forms.Version, Tag(TEXT)] | Annotated[ApiVersionSpec, Tag(MAPPING)],
    choose_by_tag(
        classify_text_or_mapping, "a version such as v1alpha1 or a mapping {name: v1alpha1, …}"
    ),
]


class WatchSpec(SpecModel):
    """Another kind to watch: its changes enqueue objects of the kind that declares the watch."""

    api_version: forms.ObjectApiVersion = Field(description="Such as v1 or apps/v1.")
    kind: forms.Kind = Field(description="The kind to watch.")
    by: Literal["ownerReference", "field", "label"] = Field(
        description="How to find your objects: as owners of the changed one, by a field with "
        "its name, or by a label of it with their name."
    )
    path: forms.SpecPath | None = Field(
        None, description="With `by: field`, the field with the name, such as spec.sshKeyRef.name."
    )
    label: forms.LabelKey | None = Field(
        None, description="With `by: label`, the key of the label, such as acme.io/machine."
    )
    resource: forms.ResourceName | None = Field(
        None, description="The plural of the kind in URLs; derived unless given."
    )
    scope: Literal["Namespaced", "Cluster"] | None = Field(
        None, description="Scope of the kind; Namespaced unless given."
    )


class WebhooksSpec(SpecModel):
    """Webhooks with your own code, for checks and defaults that CEL and schemas cannot express."""

    validation: bool | None = Field(
        None, description="Whether your code validates objects; false by default."
    )
    defaulting: bool | None = Field(
        None, description="Whether your code fills in fields; false by default."
    )
    deletion: bool | None = Field(
        None,
        description="Whether your code validates deletions too; false by default. "
        "Then nothing can be deleted while no manager runs.",
    )
    templates: bool | None = Field(
        None, description="Whether templates are treated like objects; true by default."
    )
    timeout_seconds: Annotated[int, Field(ge=1, le=30)] | None = Field(
        None, description="Seconds that the API server waits for the response; 10 by default."
    )


class PrinterColumnSpec(SpecModel):
    """One column of `kubectl get`."""

    name: forms.Line = Field(description="Heading of the column.")
    type: Literal["integer", "number", "string", "boolean", "date"] = Field(
        description="How the value is shown."
    )
    json_path: forms.Line = Field(description="Where the value is, such as `.spec.size`.")
    priority: Annotated[int, Field(ge=0, le=2**31 - 1)] = Field(
        0, description="0 is always shown; greater ones with `-o wide`."
    )
    description: forms.Text | None = Field(None, description="The meaning of the column.")


class KubectlSpec(SpecModel):
    """The categories under which kubectl lists a kind, and the columns that kubectl prints."""

    categories: Many[forms.CrdName] | None = Field(
        None, description="Categories for kubectl, besides cluster-api."
    )
    contract_category: bool | None = Field(
        None, description="Whether the kind is in the category cluster-api; true by default."
    )
    printer_columns: Many[PrinterColumnSpec] | None = Field(
        None, description="Your columns of `kubectl get`, besides the contract's."
    )
    contract_columns: bool | None = Field(
        None, description="Whether `kubectl get` shows the contract's columns; true by default."
    )


class ContractFieldsSpec(SpecModel):
    """Schemas for contract fields that need different limits."""

    spec: Fields | None = Field(
        None,
        description="Fields of the contract in spec, with their schemas; templates repeat them.",
    )
    status: Fields | None = Field(
        None, description="Fields of the contract in status, with their schemas."
    )
    without: Many[forms.ContractField] | None = Field(
        None,
        description="Fields of the contract that the CRD does not have, such as "
        "status.failureReason; of a template also metadata, which is spec.template.metadata.",
    )
    exact: bool | None = Field(
        None,
        description="Whether the schemas stay as they are written; by default capsmith adds the "
        "properties that Cluster API or the manager use.",
    )


class PartLimits(SpecModel):
    """Limits for a top-level part of an object, such as its status."""

    min_properties: Count | None = Field(None, description="Fewest fields.")
    max_properties: Count | None = Field(None, description="Most fields.")
    nullable: bool | None = Field(None, description="Whether null is allowed.")
    default: Any = Field(None, description="The value when none is given.")
    validations: Annotated[Many[Validation], Field(min_length=1)] | None = Field(
        None, alias="x-kubernetes-validations", description="Rules in CEL on the whole part."
    )
    required: Many[forms.FieldName] | None = Field(
        None,
        description="Of status: fields without which it is refused; the manager writes zero "
        "values into them until your code has others.",
    )


TemplatePart = Literal["metadata", "spec", "spec.template", "spec.template.spec"]


class TemplateVersionSpec(SpecModel):
    """Differences between a template and its kind in one API version."""

    spec: Fields | None = Field(
        None,
        description="All your fields in spec.template.spec; those of the kind unless given. Your "
        "code reads templates by the types of the kind.",
    )
    validations: Many[Validation] | None = Field(
        None,
        description="Rules in CEL on the whole of spec.template.spec; those of the kind unless "
        "given.",
    )
    contract_fields: ContractFieldsSpec | None = Field(
        None, description="Schemas of the contract's fields; those of the kind unless given."
    )
    metadata: FieldLike | None = Field(
        None,
        description="Schema of spec.template.metadata; labels and annotations are always in it.",
    )
    required_parts: Many[TemplatePart] | None = Field(
        None,
        description="Parts without which a template is refused; all but metadata unless given.",
    )
    part_limits: (
        dict[Literal["spec", "spec.template", "spec.template.spec", "status"], PartLimits] | None
    ) = Field(None, description="Limits for whole parts: {spec.template: {minProperties: 1}}.")
    printer_columns: Many[PrinterColumnSpec] | None = Field(
        None, description="Your columns of `kubectl get` for the template; none unless given."
    )


class TemplateSpec(KubectlSpec, TemplateVersionSpec):
    """Differences between a kind and its template."""

    api_versions: Annotated[Many[ApiVersionLike], Field(min_length=1)] | None = Field(
        None, description="API versions in which the template is; those of the kind unless given."
    )
    status: Fields | None = Field(
        None, description="Your fields in status of the template, which your code writes."
    )
    short_names: Many[forms.CrdName] | None = Field(
        None, description="Short names of the template for kubectl; none unless given."
    )
    object_name: NameLimits | None = Field(
        None, description="Limits for the names of templates; none unless given."
    )
    transition_rules: bool | None = Field(
        None,
        description="Whether the template repeats rules that compare with the old value; false by "
        "default: the dry run of a ClusterClass would fail in them.",
    )
    versions: dict[forms.Version, TemplateVersionSpec] | None = Field(
        None, description="API versions in which the template is not as in the storage version."
    )


TemplateLike = Annotated[
    Annotated[bool, Tag(FLAG)] | Annotated[TemplateSpec, Tag(MAPPING)],
    choose_by_tag(classify_flag_or_mapping, "true, false or a mapping {status: …}"),
]


HookName = Literal[
    "BeforeClusterCreate",
    "AfterControlPlaneInitialized",
    "BeforeClusterUpgrade",
    "BeforeControlPlaneUpgrade",
    "AfterControlPlaneUpgrade",
    "BeforeWorkersUpgrade",
    "AfterWorkersUpgrade",
    "AfterClusterUpgrade",
    "BeforeClusterDelete",
    "GeneratePatches",
    "ValidateTopology",
    "DiscoverVariables",
    "GenerateUpgradePlan",
    "CanUpdateMachine",
    "CanUpdateMachineSet",
    "UpdateMachine",
]
"""Names of hooks (RX-05), which schemas/contracts/common/hooks.yaml describes."""


class VersionFieldsSpec(SpecModel):
    """Your fields in an API version where they differ from the storage version."""

    spec: Fields | None = Field(
        None,
        description="All your fields in spec in this version; those of the kind unless given.",
    )
    status: Fields | None = Field(
        None,
        description="All your fields in status in this version; those of the kind unless given.",
    )
    validations: Many[Validation] | None = Field(
        None,
        description="Rules in CEL on the whole spec in this version; those of the kind unless "
        "given.",
    )
    object_validations: Many[Validation] | None = Field(
        None,
        description="Rules in CEL on the whole object in this version; those of the kind unless "
        "given.",
    )
    printer_columns: Many[PrinterColumnSpec] | None = Field(
        None,
        description="Your columns of `kubectl get` in this version; unless given those of the "
        "kind whose fields it has.",
    )
    contract_fields: ContractFieldsSpec | None = Field(
        None,
        description="Schemas of the contract's fields in this version; those of the kind unless "
        "given.",
    )
    required_parts: Many[Literal["spec"]] | None = Field(
        None,
        description="[spec]: objects without spec are refused in this version, []: they are not; "
        "as in the kind unless given.",
    )
    part_limits: dict[Literal["spec", "status"], PartLimits] | None = Field(
        None,
        description="Limits for whole parts of objects in this version; those of the kind unless "
        "given.",
    )


_IMPLEMENTS = (
    "The part of Cluster API's contract that the kind plays; Resource for a further kind of your "
    "own, such as a network or an image."
)


class KindSpec(KubectlSpec):
    """A kind of the provider's API; a subclass for each section adds what the kind implements."""

    implements: str = Field(description=_IMPLEMENTS)
    description: forms.Text | None = Field(None, description="Text of `kubectl explain`.")
    short_names: Many[forms.CrdName] | None = Field(
        None, description="Short names for kubectl; derived from the kind unless given."
    )
    scope: Literal["Namespaced", "Cluster"] | None = Field(
        None, description="Scope of a kind that implements Resource; Namespaced by default."
    )
    group: forms.Group | None = Field(
        None,
        description="API group of a kind that implements Resource; that of the section by default.",
    )
    plural: forms.CrdName | None = Field(
        None, description="Plural of a kind that implements Resource; derived unless given."
    )
    features: dict[str, bool] | None = Field(
        None, description="Optional parts of the contract, switched on or off by name."
    )
    spec: Fields | None = Field(
        None, description="Your fields in spec; capsmith adds the contract's."
    )
    status: Fields | None = Field(
        None, description="Your fields in status; capsmith adds the contract's."
    )
    contract_fields: ContractFieldsSpec | None = Field(
        None,
        description="Schemas of the contract's fields, where CRDs that exist have other limits; "
        "properties that Cluster API or the manager use are always added.",
    )
    required_parts: Many[Literal["spec"]] | None = Field(
        None,
        description="[spec]: objects without spec are refused, []: they are not; by default they "
        "are if the spec has required fields.",
    )
    part_limits: dict[Literal["spec", "status"], PartLimits] | None = Field(
        None, description="Limits for whole parts of objects: {status: {minProperties: 1}}."
    )
    template: TemplateLike | None = Field(
        None,
        description="false: no template kind, so that no ClusterClass can use the kind; "
        "a mapping: what the template has otherwise than the kind.",
    )
    validations: Many[Validation] | None = Field(
        None, description="Rules in CEL on the whole spec."
    )
    object_validations: Many[Validation] | None = Field(
        None,
        description="Rules in CEL on the whole object; templates do not repeat them. Of metadata "
        "they see name and generateName only.",
    )
    object_name: NameLimits | None = Field(
        None, description="Limits for the names of objects; templates do not repeat them."
    )
    api_versions: Annotated[Many[ApiVersionLike], Field(min_length=1)] | None = Field(
        None,
        description="API versions of the provider in which the kind is, with what is otherwise "
        "than in `apiVersions` at the top; all unless given.",
    )
    versions: dict[forms.Version, VersionFieldsSpec] | None = Field(
        None,
        description="API versions in which your fields differ from those of the storage version, "
        "which are in `spec` and `status`; your code converts between them. Keep `versions: {}` "
        "when the last one goes: clusterctl cannot remove the conversion webhook from a CRD.",
    )
    watches: Many[WatchSpec] | None = Field(
        None, description="Further kinds whose changes lead to a reconcile of this kind."
    )
    webhooks: WebhooksSpec | None = Field(
        None,
        description="Validation and defaults by your code; prefer `validations` and `default`.",
    )


class InfrastructureKindSpec(KindSpec):
    """A kind that an infrastructure provider implements."""

    implements: Literal["InfraCluster", "InfraMachine", "InfraMachinePool", "Resource"] = Field(
        description=_IMPLEMENTS
    )
    machine_kind: forms.Kind | None = Field(
        None,
        description="Kind of the machines of a pool with the feature machines; "
        "needed where there are several.",
    )


class BootstrapKindSpec(KindSpec):
    """A kind that a bootstrap provider implements."""

    implements: Literal["BootstrapConfig", "Resource"] = Field(description=_IMPLEMENTS)


class ForeignKindSpec(SpecModel):
    """A kind of another provider."""

    group: forms.Group = Field(description="API group of the kind.")
    kind: forms.Kind = Field(description="The kind.")


BootstrapLike = Annotated[
    Annotated[forms.Kind, Tag(TEXT)] | Annotated[ForeignKindSpec, Tag(MAPPING)],
    choose_by_tag(
        classify_text_or_mapping, "a kind such as AcmeConfig or a mapping {group: …, kind: …}"
    ),
]


class ControlPlaneKindSpec(KindSpec):
    """A kind that a control plane provider implements."""

    implements: Literal["ControlPlane", "Resource"] = Field(description=_IMPLEMENTS)
    bootstrap: BootstrapLike | None = Field(
        None,
        description="Kind of the bootstrap configurations of its Machines: one of the section "
        "bootstrap, which may be omitted if there is only one, or {group: …, kind: …} of "
        "another provider.",
    )


class PoolKindSpec(KindSpec):
    """A kind that an IPAM provider implements, such as an address pool."""

    implements: Literal["IPPool", "GlobalIPPool", "Resource"] = Field(description=_IMPLEMENTS)


class AddonKindSpec(KindSpec):
    """A kind that an add-on provider implements, such as a network plugin for workload clusters."""

    implements: Literal["Addon", "Resource"] = Field(description=_IMPLEMENTS)


class HookSpec(SpecModel):
    """A hook of a runtime extension whose settings differ from the defaults."""

    hook: HookName = Field(description="The hook of Cluster API's runtime SDK.")
    name: forms.Label | None = Field(
        None, description="Its name in ClusterClasses; generate-patches for GeneratePatches."
    )
    timeout_seconds: Annotated[int, Field(ge=1, le=30)] | None = Field(
        None, description="Seconds that core waits for the response; 10 by default."
    )
    failure_policy: Literal["Fail", "Ignore"] | None = Field(
        None, description="What core does without a response; Fail by default."
    )


HookLike = Annotated[
    Annotated[HookName, Tag(TEXT)] | Annotated[HookSpec, Tag(MAPPING)],
    choose_by_tag(
        classify_text_or_mapping, "a hook such as GeneratePatches or a mapping {hook: …, name: …}"
    ),
]


class RuntimeExtensionSpec(SpecModel):
    """The hooks of a runtime extension."""

    hooks: Annotated[Many[HookLike], Field(min_length=1)] = Field(
        description="Hooks of Cluster API's runtime SDK that your code implements."
    )


Section = Literal["infrastructure", "bootstrap", "controlPlane", "ipam", "addon"]
"""Keys of the sections that contain kinds."""
ComponentSection = Literal[Section, "runtimeExtension"]


class CredentialsSpec(SpecModel):
    """An identity kind: the credentials that it holds, and the kinds that use them."""

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


class PolicyRuleSpec(SpecModel):
    """A permission that the infrastructure code needs in the management cluster."""

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
    choose_by_tag(
        classify_text_or_mapping, "a kind such as AcmeIdentity or a mapping {kind: …, keys: […]}"
    ),
]
CredentialsLike = Annotated[
    Annotated[forms.Kind, Tag(TEXT)]
    | Annotated[CredentialsSpec, Tag(MAPPING)]
    | Annotated[Many[IdentityLike], Field(min_length=1), Tag(LIST)],
    choose_by_tag(
        classify_text_mapping_or_list,
        "a kind such as AcmeIdentity, a mapping {kind: …, keys: […]}, or a list of these",
    ),
]


_KindSpec = TypeVar("_KindSpec", bound=KindSpec)
Kinds = Annotated[dict[forms.Kind, _KindSpec], Field(min_length=1)] | None


class ProviderSpec(SpecModel):
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
        """Return whether the file has a section."""
        return getattr(self, _ATTRIBUTES[section]) is not None

    def section(self, name: Section) -> Mapping[str, KindSpec]:
        """Return the kinds of one section by name; empty if the file lacks the section."""
        kinds: Mapping[str, KindSpec] | None = getattr(self, _ATTRIBUTES[name])
        return kinds or {}

    def identities(self) -> Iterator[tuple[tuple[str | int, ...], str | CredentialsSpec]]:
        """Yield the path to each identity kind, and its description."""
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
