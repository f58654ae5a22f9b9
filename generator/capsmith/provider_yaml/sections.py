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
    Part,
    Validation,
    one_of_two,
    text_or_mapping,
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


class PrinterColumnSpec(Part):
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


class WatchSpec(Part):
    """A further kind whose changes enqueue objects of the kind that declares it."""

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


class WebhooksSpec(Part):
    """Validation and defaults by your code, for what rules in CEL and the schema cannot express."""

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


_IMPLEMENTS = "The part of Cluster API's contract that the kind plays."


class KindSpec(Part):
    """One kind of the provider's API; each section's own class declares what it implements."""

    implements: str = Field(description=_IMPLEMENTS)
    description: forms.Text | None = Field(None, description="Text of `kubectl explain`.")
    short_names: Many[forms.Label] | None = Field(
        None, description="Short names for kubectl; derived from the kind unless given."
    )
    categories: Many[forms.Label] | None = Field(
        None, description="Categories for kubectl, besides cluster-api."
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
    validations: Many[Validation] | None = Field(
        None, description="Rules in CEL on the whole spec."
    )
    printer_columns: Many[PrinterColumnSpec] | None = Field(
        None, description="Your columns of `kubectl get`, besides the contract's."
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
        description="The part of Cluster API's contract that the kind plays; Resource for a "
        "further kind of your own, such as a network or an image."
    )
    scope: Literal["Namespaced", "Cluster"] | None = Field(
        None, description="Scope of a kind that implements Resource; Namespaced by default."
    )
    machine_kind: forms.Kind | None = Field(
        None,
        description="Kind of the machines of a pool with the feature machines; "
        "needed where there are several.",
    )


class BootstrapKindSpec(KindSpec):
    """One kind of a bootstrap provider."""

    implements: Literal["BootstrapConfig"] = Field(description=_IMPLEMENTS)


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

    implements: Literal["ControlPlane"] = Field(description=_IMPLEMENTS)
    bootstrap: BootstrapLike | None = Field(
        None,
        description="Kind of the bootstrap configurations of its Machines: one of the section "
        "bootstrap, which may be omitted if there is only one, or {group: …, kind: …} of "
        "another provider.",
    )


class PoolKindSpec(KindSpec):
    """One kind of pool that addresses come from."""

    implements: Literal["IPPool", "GlobalIPPool"] = Field(description=_IMPLEMENTS)


class AddonKindSpec(KindSpec):
    """One kind of add-on for workload clusters."""

    implements: Literal["Addon"] = Field(description=_IMPLEMENTS)


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
