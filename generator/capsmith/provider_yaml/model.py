"""The pydantic model of provider.yaml: the keys that an author may write.

An optional key that the author leaves out is None here.  :mod:`capsmith.provider.derive` chooses
its value, and :mod:`capsmith.resolving` checks keys against each other.  The model is one file so
that the format can be read from top to bottom; ``capsmith schema`` prints it as JSON Schema.
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
from capsmith.provider_yaml.manager import ManagerSpec
from capsmith.provider_yaml.scale import ScaleLike

ContractVersion = Literal["v1beta1", "v1beta2"]
_PART_FIELD_HINT = "Use a letter, then letters, digits, `.`, `_` and `-`."
_PartFieldName = Annotated[
    str,
    forms.Form("field-name", "a field name", "[A-Za-z][A-Za-z0-9._-]*", 63, _PART_FIELD_HINT),
]
PartFields = dict[_PartFieldName, FieldLike]
"""Fields for which no code is generated, and to which no path refers: dots in names are no harm."""


class ApiVersionSpec(SpecModel):
    """One version of the provider's API."""

    name: forms.Version = Field(description="Name of the version, such as v1alpha1.")
    served: bool | None = Field(
        None, description="Whether the API server serves the version; true by default."
    )
    storage: bool | None = Field(
        None,
        description=(
            "Whether objects are stored in this version; by default the newest version "
            "is the storage version."
        ),
    )
    contract: ContractVersion | None = Field(
        None,
        description="Contract whose shape the version has; required if `contracts` names two.",
    )
    deprecated: bool | None = Field(
        None,
        description="Whether the API server warns every user of the version; false by default.",
    )
    deprecation_warning: forms.Warning | None = Field(
        None, description="Text of the deprecation warning; by default the API server's own text."
    )


ApiVersionLike = Annotated[
    Annotated[forms.Version, Tag(TEXT)] | Annotated[ApiVersionSpec, Tag(MAPPING)],
    choose_by_tag(
        classify_text_or_mapping, "a version such as v1alpha1 or a mapping {name: v1alpha1, …}"
    ),
]


class WatchSpec(SpecModel):
    """Another kind to watch: its changes enqueue objects of the kind that declares the watch."""

    api_version: forms.ObjectApiVersion = Field(
        description="API version of the kind, such as v1 or apps/v1."
    )
    kind: forms.Kind = Field(description="Name of the kind to watch.")
    by: Literal["ownerReference", "field", "label"] = Field(
        description=(
            "How to find your objects: `ownerReference` for the owners of the changed "
            "object, `field` for objects that name it in a field, `label` for the "
            "object that a label on it names."
        )
    )
    path: forms.SpecPath | None = Field(
        None,
        description=(
            "With `by: field`, the path to the field of your kind that names the "
            "changed object, such as spec.sshKeyRef.name."
        ),
    )
    label: forms.LabelKey | None = Field(
        None,
        description=(
            "With `by: label`, the key of the label on the changed object, such as "
            "acme.io/machine."
        ),
    )
    resource: forms.ResourceName | None = Field(
        None, description="Plural of the kind in URLs; derived from the kind by default."
    )
    scope: Literal["Namespaced", "Cluster"] | None = Field(
        None, description="Scope of the kind; Namespaced by default."
    )


class WebhooksSpec(SpecModel):
    """Webhooks with your own code, for checks and defaults that CEL and schemas cannot express."""

    validation: bool | None = Field(
        None, description="Whether your code validates objects; false by default."
    )
    defaulting: bool | None = Field(
        None, description="Whether your code sets defaults for fields; false by default."
    )
    deletion: bool | None = Field(
        None,
        description=(
            "Whether your code validates deletions too; false by default. If true, no "
            "object can be deleted while no manager is running."
        ),
    )
    templates: bool | None = Field(
        None,
        description=(
            "Whether templates are validated and defaulted like objects; true by " "default."
        ),
    )
    timeout_seconds: Annotated[int, Field(ge=1, le=30)] | None = Field(
        None, description="Seconds that the API server waits for a response; 10 by default."
    )


class PrinterColumnSpec(SpecModel):
    """One column of `kubectl get`."""

    name: forms.Line = Field(description="Heading of the column.")
    type: Literal["integer", "number", "string", "boolean", "date"] = Field(
        description="Type of the value, which decides how kubectl prints it."
    )
    json_path: forms.Line = Field(description="Path to the value, such as `.spec.size`.")
    priority: Annotated[int, Field(ge=0, le=2**31 - 1)] = Field(
        0,
        description=(
            "0 for columns that are always shown; greater for columns that need `-o " "wide`."
        ),
    )
    description: forms.Text | None = Field(None, description="Meaning of the column.")


class KubectlSpec(SpecModel):
    """The categories under which kubectl lists a kind, and the columns that kubectl prints."""

    categories: Many[forms.CrdName] | None = Field(
        None, description="Categories for kubectl, in addition to cluster-api."
    )
    contract_category: bool | None = Field(
        None, description="Whether the kind is in the category cluster-api; true by default."
    )
    printer_columns: Many[PrinterColumnSpec] | None = Field(
        None, description="Your columns of `kubectl get`, in addition to the contract's columns."
    )
    contract_columns: bool | None = Field(
        None, description="Whether `kubectl get` shows the contract's columns; true by default."
    )


class ContractFieldsSpec(SpecModel):
    """Schemas for contract fields that need different limits."""

    spec: Fields | None = Field(
        None,
        description="Schemas for the contract's fields in spec; templates have them too.",
    )
    status: Fields | None = Field(None, description="Schemas for the contract's fields in status.")
    without: Many[forms.ContractField] | None = Field(
        None,
        description=(
            "Contract fields that the CRD leaves out, such as status.failureReason; for "
            "a template also `metadata`, which means spec.template.metadata."
        ),
    )
    paths: dict[forms.ContractPath, forms.ContractPath] | None = Field(
        None,
        description=(
            "Fields of a control plane that the CRD has elsewhere: the path in the contract, then "
            "the path in the CRD, such as {spec.machineTemplate.infrastructureRef: "
            "spec.infrastructureTemplate}. No ClusterClass can use the kind, so set `template: "
            "false`."
        ),
    )
    exact: bool | None = Field(
        None,
        description=(
            "Whether the schemas are used unchanged; by default capsmith adds the "
            "properties that Cluster API or the manager uses."
        ),
    )


class PartLimits(SpecModel):
    """Additional limits for a top-level part of an object, such as its status."""

    min_properties: Count | None = Field(None, description="Minimum number of fields.")
    max_properties: Count | None = Field(None, description="Maximum number of fields.")
    nullable: bool | None = Field(None, description="Whether null is allowed.")
    default: Any = Field(None, description="Value of the part if it is absent.")
    validations: Annotated[Many[Validation], Field(min_length=1)] | None = Field(
        None, alias="x-kubernetes-validations", description="CEL rules for the whole part."
    )
    required: Many[forms.FieldName] | None = Field(
        None,
        description=(
            "Only for status: fields that every status must have; the manager writes "
            "zero values until your code sets others."
        ),
    )


TemplatePart = Literal["metadata", "spec", "spec.template", "spec.template.spec"]


class TemplateVersionSpec(SpecModel):
    """Differences between a template and its kind in one API version."""

    spec: Fields | None = Field(
        None,
        description=(
            "All your fields in spec.template.spec; by default the kind's fields. Your "
            "code reads templates with the types of the kind."
        ),
    )
    validations: Many[Validation] | None = Field(
        None,
        description=(
            "CEL rules for the whole of spec.template.spec; by default the kind's " "rules."
        ),
    )
    contract_fields: ContractFieldsSpec | None = Field(
        None, description="Schemas for the contract's fields; by default the kind's schemas."
    )
    status: Fields | None = Field(
        None, description="Your fields in the template's status, which your code writes."
    )
    metadata: FieldLike | None = Field(
        None,
        description="Schema of spec.template.metadata, which always has labels and annotations.",
    )
    required_parts: Many[TemplatePart] | None = Field(
        None,
        description="Parts that every template must have; by default all parts except metadata.",
    )
    part_limits: (
        dict[Literal["spec", "spec.template", "spec.template.spec", "status"], PartLimits] | None
    ) = Field(
        None, description="Limits for whole parts, such as {spec.template: {minProperties: 1}}."
    )
    part_fields: dict[Literal["spec", "spec.template"], PartFields] | None = Field(
        None,
        description=(
            "Your fields beside spec.template or spec.template.spec, by the part that has "
            "them. No machine is created from them; your code reads them from the template."
        ),
    )
    printer_columns: Many[PrinterColumnSpec] | None = Field(
        None, description="Columns of `kubectl get` for the template; none by default."
    )


class TemplateSpec(KubectlSpec, TemplateVersionSpec):
    """Differences between a kind and its template."""

    api_versions: Annotated[Many[ApiVersionLike], Field(min_length=1)] | None = Field(
        None, description="API versions that have the template; by default the kind's versions."
    )
    short_names: Many[forms.CrdName] | None = Field(
        None, description="Short names of the template for kubectl; none by default."
    )
    object_name: NameLimits | None = Field(
        None, description="Limits for the names of templates; none by default."
    )
    transition_rules: bool | None = Field(
        None,
        description=(
            "Whether the template has the kind's rules that read the old value; false "
            "by default, because the dry run of a ClusterClass would violate them."
        ),
    )
    versions: dict[forms.Version, TemplateVersionSpec] | None = Field(
        None, description="API versions in which the template differs from the storage version."
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
"""Hook names (RX-05), which schemas/contracts/common/hooks.yaml describes."""


class VersionFieldsSpec(SpecModel):
    """Your fields in one API version, where they differ from the storage version."""

    spec: Fields | None = Field(
        None,
        description="All your fields in spec in this version; by default the kind's fields.",
    )
    status: Fields | None = Field(
        None,
        description="All your fields in status in this version; by default the kind's fields.",
    )
    validations: Many[Validation] | None = Field(
        None,
        description="CEL rules for the whole spec in this version; by default the kind's rules.",
    )
    object_validations: Many[Validation] | None = Field(
        None,
        description=(
            "CEL rules for the whole object in this version; by default the kind's " "rules."
        ),
    )
    printer_columns: Many[PrinterColumnSpec] | None = Field(
        None,
        description=(
            "Your columns of `kubectl get` in this version; by default the kind's "
            "columns whose fields this version has."
        ),
    )
    contract_fields: ContractFieldsSpec | None = Field(
        None,
        description=(
            "Schemas for the contract's fields in this version; by default the kind's " "schemas."
        ),
    )
    required_parts: Many[Literal["spec"]] | None = Field(
        None,
        description=(
            "[spec] if every object must have a spec in this version, [] if not; by "
            "default as for the kind."
        ),
    )
    part_limits: dict[Literal["spec", "status"], PartLimits] | None = Field(
        None,
        description=(
            "Limits for whole parts of objects in this version; by default the kind's " "limits."
        ),
    )


_IMPLEMENTS = (
    "Role of the kind in Cluster API's contract; Remediation for requests of MachineHealthChecks, "
    "Resource for a kind that the contract does not define, such as a network or an image."
)


class KindSpec(KubectlSpec):
    """A kind of the provider's API.

    Each section has a subclass, which adds the roles that the section's kinds may implement.
    """

    implements: str = Field(description=_IMPLEMENTS)
    description: forms.Text | None = Field(None, description="Description for `kubectl explain`.")
    short_names: Many[forms.CrdName] | None = Field(
        None, description="Short names for kubectl; derived from the kind by default."
    )
    scope: Literal["Namespaced", "Cluster"] | None = Field(
        None, description="Scope of a kind that implements Resource; Namespaced by default."
    )
    group: forms.Group | None = Field(
        None,
        description=(
            "API group of a kind that implements Resource; by default the section's " "group."
        ),
    )
    plural: forms.CrdName | None = Field(
        None,
        description=(
            "Plural of a kind that implements Resource; derived from the kind by " "default."
        ),
    )
    features: dict[str, bool] | None = Field(
        None, description="Optional features of the contract, enabled or disabled by name."
    )
    spec: Fields | None = Field(
        None, description="Your fields in spec; capsmith adds the contract's fields."
    )
    status: Fields | None = Field(
        None, description="Your fields in status; capsmith adds the contract's fields."
    )
    contract_fields: ContractFieldsSpec | None = Field(
        None,
        description=(
            "Schemas for the contract's fields, for existing CRDs with other limits; "
            "properties that Cluster API or the manager uses are always added."
        ),
    )
    required_parts: Many[Literal["spec"]] | None = Field(
        None,
        description=(
            "[spec] if every object must have a spec, [] if not; by default [spec] if "
            "the spec has required fields."
        ),
    )
    part_limits: dict[Literal["spec", "status"], PartLimits] | None = Field(
        None,
        description="Limits for whole parts of objects, such as {status: {minProperties: 1}}.",
    )
    template: TemplateLike | None = Field(
        None,
        description=(
            "false to generate no template kind, so that no ClusterClass can use the "
            "kind; or a mapping with the differences between template and kind."
        ),
    )
    validations: Many[Validation] | None = Field(None, description="CEL rules for the whole spec.")
    object_validations: Many[Validation] | None = Field(
        None,
        description=(
            "CEL rules for the whole object; templates do not have them. Of the "
            "metadata, rules can read only name and generateName."
        ),
    )
    object_name: NameLimits | None = Field(
        None, description="Limits for the names of objects; templates do not have them."
    )
    scale: ScaleLike | None = Field(
        None,
        description=(
            "Paths of the subresource scale, which versions with these fields have; by default "
            "the contract's, for control planes with replicas. false leaves it out."
        ),
    )
    api_versions: Annotated[Many[ApiVersionLike], Field(min_length=1)] | None = Field(
        None,
        description=(
            "API versions of the provider that have the kind, each with its differences "
            "from `apiVersions` at the top level; all versions by default."
        ),
    )
    versions: dict[forms.Version, VersionFieldsSpec] | None = Field(
        None,
        description=(
            "API versions whose fields differ from those of the storage version, which "
            "are in `spec` and `status`; your code converts between them. Keep "
            "`versions: {}` after you remove the last version: clusterctl cannot remove "
            "the conversion webhook from a CRD."
        ),
    )
    watches: Many[WatchSpec] | None = Field(
        None, description="Additional kinds whose changes trigger a reconcile of this kind."
    )
    webhooks: WebhooksSpec | None = Field(
        None,
        description=(
            "Validation and defaulting by your code; prefer `validations` and " "`default`."
        ),
    )


class InfrastructureKindSpec(KindSpec):
    """A kind that an infrastructure provider implements."""

    implements: Literal[
        "InfraCluster", "InfraMachine", "InfraMachinePool", "Remediation", "Resource"
    ] = Field(description=_IMPLEMENTS)
    machine_kind: forms.Kind | None = Field(
        None,
        description=(
            "Kind of a pool's machines, for the feature machines; required if there are "
            "several machine kinds."
        ),
    )
    instance_status: Fields | None = Field(
        None,
        description=(
            "Your fields of each machine in `status.instances` of a pool without Machines; "
            "with {}, its machines have conditions but no further fields."
        ),
    )


class BootstrapKindSpec(KindSpec):
    """A kind that a bootstrap provider implements."""

    implements: Literal["BootstrapConfig", "Resource"] = Field(description=_IMPLEMENTS)


class ForeignKindSpec(SpecModel):
    """A reference to a kind that another provider defines."""

    group: forms.Group = Field(description="API group of the kind.")
    kind: forms.Kind = Field(description="Name of the kind.")


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
        description=(
            "Kind of the bootstrap configurations of the control plane's Machines: a "
            "kind in the section bootstrap, optional if there is only one, or {group: "
            "…, kind: …} for a kind of another provider."
        ),
    )


class PoolKindSpec(KindSpec):
    """A kind that an IPAM provider implements, such as an address pool."""

    implements: Literal["IPPool", "GlobalIPPool", "Resource"] = Field(description=_IMPLEMENTS)


class AddonKindSpec(KindSpec):
    """A kind that an add-on provider implements, such as a network plugin for workload clusters."""

    implements: Literal["Addon", "Resource"] = Field(description=_IMPLEMENTS)


class HookSpec(SpecModel):
    """A hook of a runtime extension whose settings differ from the defaults."""

    hook: HookName = Field(description="Name of the hook in Cluster API's runtime SDK.")
    name: forms.Label | None = Field(
        None,
        description=(
            "Name of the handler in ClusterClasses; by default generate-patches for "
            "GeneratePatches."
        ),
    )
    timeout_seconds: Annotated[int, Field(ge=1, le=30)] | None = Field(
        None, description="Seconds that core waits for a response; 10 by default."
    )
    failure_policy: Literal["Fail", "Ignore"] | None = Field(
        None,
        description="Whether core fails or continues if there is no response; Fail by default.",
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

    kind: forms.Kind = Field(description="Name of the identity kind, such as AcmeIdentity.")
    keys: Annotated[Many[forms.SecretKey], Field(min_length=1)] | None = Field(
        None, description="Keys that the Secret must have; [token] by default."
    )
    namespaced: bool | None = Field(
        None,
        description=(
            "Whether identities and their Secrets are in the namespace of the clusters "
            "that use them; false by default: identities are then cluster-scoped, with "
            "allowedNamespaces, and their Secrets are in the manager's namespace."
        ),
    )
    secret: bool | None = Field(
        None, description="Whether identities refer to a Secret; true by default."
    )
    sources: Annotated[Many[forms.Kind], Field(min_length=1)] | None = Field(
        None,
        description=(
            "Identity kinds from which identities of this kind may be derived, such as the "
            "identity that assumes a role; it is named in spec.sourceIdentityRef."
        ),
    )
    spec: Fields | None = Field(None, description="Your fields in the identity's spec.")


class PolicyRuleSpec(SpecModel):
    """A permission that the infrastructure code needs in the management cluster."""

    api_groups: Annotated[Many[forms.ApiGroupOrCore], Field(min_length=1)] = Field(
        description='API groups; "" is the core group.'
    )
    resources: Annotated[Many[forms.RbacResource], Field(min_length=1)] = Field(
        description="Plurals in lower case; a subresource follows after a slash."
    )
    verbs: Annotated[Many[forms.RbacVerb], Field(min_length=1)] = Field(
        description="Verbs such as get, list and watch."
    )
    resource_names: Many[forms.ObjectName] | None = Field(
        None,
        description="Names of the objects that the rule is limited to; all objects by default.",
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

    capsmith: Literal[1] = Field(description="Version of this format, which is 1.")
    name: forms.ProviderName = Field(
        description=(
            "Name of the provider for clusterctl, as in `clusterctl init " "--infrastructure acme`."
        )
    )
    title: forms.Line | None = Field(None, description="Name of the provider for display.")
    description: forms.Text | None = Field(None, description="Purpose of the provider.")
    owner: forms.Line | None = Field(None, description="Copyright holder.")
    repository: forms.Repository = Field(
        description="URL of the repository that releases the provider."
    )
    image: forms.Image | None = Field(
        None,
        description=(
            "Image of the manager, without a tag; derived from the repository by " "default."
        ),
    )
    licence: forms.Licence | None = Field(
        None, description="SPDX identifier of the licence; Apache-2.0 by default."
    )
    package: forms.PackageName | None = Field(
        None, description="Name of the Python package; derived from the repository by default."
    )
    contracts: Annotated[Many[ContractVersion], Field(min_length=1)] = Field(
        description="Versions of Cluster API's contract that the provider supports."
    )
    api_versions: Annotated[Many[ApiVersionLike], Field(min_length=1)] | None = Field(
        None, description="Versions of the provider's own API; [v1alpha1] by default."
    )
    releases: Annotated[dict[forms.Series, ContractVersion], Field(min_length=1)] = Field(
        description="Release series, each with its contract, such as {v0.1: v1beta2}."
    )
    groups: dict[Section, forms.Group] | None = Field(
        None,
        description=(
            "API groups by section; infrastructure.cluster.x-k8s.io and similar groups "
            "by default."
        ),
    )
    namespaces: dict[ComponentSection, forms.Label] | None = Field(
        None,
        description=(
            "Namespaces of the managers by section; <name>-system and similar names by " "default."
        ),
    )
    components: dict[Section, Annotated[Many[Section], Field(min_length=1)]] | None = Field(
        None,
        description=(
            "Sections that clusterctl installs as one provider with one manager, by the "
            "section that determines its type: {infrastructure: [infrastructure, "
            "controlPlane]}. Every other section is a separate provider."
        ),
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
        description=(
            "Kind that refers to the Secret with the infrastructure's credentials, or "
            "several identity kinds."
        ),
    )
    rbac: Many[PolicyRuleSpec] | None = Field(
        None, description="Permissions that your code needs in addition to the contract's."
    )
    manager: ManagerSpec | None = Field(
        None, description="Flags, feature gates and health checks of the manager."
    )
    words: Many[forms.Word] | None = Field(
        None,
        description=(
            "Words of your kinds that have capital letters inside: with VSphere, the Python "
            "module of VSphereMachine is vsphere_machine instead of v_sphere_machine."
        ),
    )
    sdk: forms.SdkName | None = Field(
        None,
        description=(
            "Import name of the infrastructure's SDK; new repositories open a client of "
            "the SDK for each identity. List its requirement under dependencies."
        ),
    )
    dependencies: Many[forms.Requirement] | None = Field(
        None, description="Python requirements of your code."
    )
    dev_dependencies: Many[forms.Requirement] | None = Field(
        None, description="Python requirements of your tests and development tools."
    )
    runtime: Literal["vendored", "package"] | None = Field(
        None,
        description=(
            "`vendored` for a copy of the runtime library in the repository (the "
            "default), `package` for a dependency on its distribution."
        ),
    )
    blueprints: forms.Folder | None = Field(
        None, description="Folder of blueprints that replace capsmith's or add to them."
    )
    flavors: Many[forms.Label] | None = Field(
        None, description="Flavors of the cluster template; [topology] by default."
    )
    cluster_classes: Many[forms.Label] | None = Field(
        None, description="Names of the released ClusterClasses; [<name>] by default."
    )
    machines: bool | None = Field(
        None,
        description=(
            "Whether Machines run on the infrastructure; true by default. With false, no kind "
            "implements InfraMachine: clusters have no workers, such as virtual clusters, or only "
            "pools of servers without Machines."
        ),
    )
    e2e: bool | None = Field(
        None,
        alias="e2e",
        description=(
            "Whether the repository has a folder e2e/ that runs Cluster API's own end-to-end "
            "tests; false by default."
        ),
    )

    def has(self, section: ComponentSection) -> bool:
        """Return whether provider.yaml has the section."""
        return getattr(self, _ATTRIBUTES[section]) is not None

    def section(self, name: Section) -> Mapping[str, KindSpec]:
        """Return the kinds in a section by name; empty if provider.yaml lacks the section."""
        kinds: Mapping[str, KindSpec] | None = getattr(self, _ATTRIBUTES[name])
        return kinds or {}

    def identities(self) -> Iterator[tuple[tuple[str | int, ...], str | CredentialsSpec]]:
        """Yield (path, description) for each identity kind in provider.yaml."""
        written = self.credentials
        if isinstance(written, tuple):
            yield from ((("credentials", index), each) for index, each in enumerate(written))
        elif written is not None:
            yield ("credentials",), written

    def kinds(self) -> Iterator[tuple[Section, str, KindSpec]]:
        """Yield (section, name, description) for each kind."""
        for section in SECTIONS:
            for kind, described in self.section(section).items():
                yield section, kind, described


SECTIONS: tuple[Section, ...] = get_args(Section)
_ATTRIBUTES: Mapping[str, str] = {
    ProviderSpec.find_key(name): name for name in ProviderSpec.model_fields
}
