"""Sections of provider.yaml: the kinds of each type of provider, and the hooks of an extension."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Tag

from capsmith.provider_yaml import forms
from capsmith.provider_yaml.fields import (
    MAPPING,
    TEXT,
    Fields,
    Many,
    NameLimits,
    Part,
    Validation,
    one_of_two,
    text_or_mapping,
)
from capsmith.provider_yaml.kind_parts import (
    ApiVersionLike,
    ContractFieldsSpec,
    KubectlSpec,
    PartLimits,
    PrinterColumnSpec,
    TemplateLike,
    WatchSpec,
    WebhooksSpec,
)

Hook = Literal[
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
"""RX-05; schemas/contracts/common/hooks.yaml describes them."""


class VersionFieldsSpec(Part):
    """Your fields in an API version in which they are not those of the storage version."""

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
    """One kind of the provider's API; each section's own class declares what it implements."""

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
    """One kind of an infrastructure provider."""

    implements: Literal["InfraCluster", "InfraMachine", "InfraMachinePool", "Resource"] = Field(
        description=_IMPLEMENTS
    )
    machine_kind: forms.Kind | None = Field(
        None,
        description="Kind of the machines of a pool with the feature machines; "
        "needed where there are several.",
    )


class BootstrapKindSpec(KindSpec):
    """One kind of a bootstrap provider."""

    implements: Literal["BootstrapConfig", "Resource"] = Field(description=_IMPLEMENTS)


class ForeignKindSpec(Part):
    """A kind of another provider."""

    group: forms.Group = Field(description="API group of the kind.")
    kind: forms.Kind = Field(description="The kind.")


BootstrapLike = Annotated[
    Annotated[forms.Kind, Tag(TEXT)] | Annotated[ForeignKindSpec, Tag(MAPPING)],
    one_of_two(text_or_mapping, "a kind such as AcmeConfig or a mapping {group: …, kind: …}"),
]


class ControlPlaneKindSpec(KindSpec):
    """One kind of a control plane provider."""

    implements: Literal["ControlPlane", "Resource"] = Field(description=_IMPLEMENTS)
    bootstrap: BootstrapLike | None = Field(
        None,
        description="Kind of the bootstrap configurations of its Machines: one of the section "
        "bootstrap, which may be omitted if there is only one, or {group: …, kind: …} of "
        "another provider.",
    )


class PoolKindSpec(KindSpec):
    """One kind of an IPAM provider, such as a pool that addresses come from."""

    implements: Literal["IPPool", "GlobalIPPool", "Resource"] = Field(description=_IMPLEMENTS)


class AddonKindSpec(KindSpec):
    """One kind of an add-on provider, such as an add-on for workload clusters."""

    implements: Literal["Addon", "Resource"] = Field(description=_IMPLEMENTS)


class HookSpec(Part):
    """One hook of a runtime extension, with settings other than the defaults."""

    hook: Hook = Field(description="The hook of Cluster API's runtime SDK.")
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
    Annotated[Hook, Tag(TEXT)] | Annotated[HookSpec, Tag(MAPPING)],
    one_of_two(text_or_mapping, "a hook such as GeneratePatches or a mapping {hook: …, name: …}"),
]


class RuntimeExtensionSpec(Part):
    """The hooks of a runtime extension."""

    hooks: Annotated[Many[HookLike], Field(min_length=1)] = Field(
        description="Hooks of Cluster API's runtime SDK that your code implements."
    )
