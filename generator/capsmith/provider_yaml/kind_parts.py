"""Parts of a kind: watches, webhooks, the contract's fields, and the template."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, Tag

from capsmith.provider_yaml import forms
from capsmith.provider_yaml.fields import (
    FLAG,
    MAPPING,
    TEXT,
    Count,
    FieldLike,
    Fields,
    Many,
    NameLimits,
    Part,
    Validation,
    flag_or_mapping,
    one_of_two,
    text_or_mapping,
)

ContractVersion = Literal["v1beta1", "v1beta2"]


class ApiVersionSpec(Part):
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
    one_of_two(text_or_mapping, "a version such as v1alpha1 or a mapping {name: v1alpha1, …}"),
]


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


class KubectlSpec(Part):
    """The categories and columns by which kubectl shows a kind."""

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


class ContractFieldsSpec(Part):
    """Schemas of the contract's fields, where those of the kind have other limits."""

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


class PartLimits(Part):
    """Limits for a whole part of an object, such as its status."""

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


class TemplateVersionSpec(Part):
    """What a template has otherwise than its kind, in one API version."""

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
    """What the template of a kind has otherwise than its kind."""

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
    one_of_two(flag_or_mapping, "true, false or a mapping {status: …}"),
]
