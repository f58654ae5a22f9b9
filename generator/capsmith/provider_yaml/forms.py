"""Types for the values in provider.yaml: names, other strings, and kinds' fields.

Patterns and length limits come from :mod:`capsmith.safetext`, so every accepted string is safe in
generated code.  Fields use the vocabulary of structural schemas, or a shorthand like ``string!``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainValidator,
    Strict,
    Tag,
)
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from capsmith import safetext
from capsmith.yamldoc.quote import quote


@dataclass(frozen=True, slots=True)
class Form:
    """A string type: a pattern, a length limit, and the finding for strings that do not match."""

    id: str
    what: str
    pattern: str
    limit: int
    hint: str

    def check(self, text: str) -> str:
        """Return ``text``, or raise PydanticCustomError with the finding's id as its type."""
        if len(text) <= self.limit and re.fullmatch(self.pattern, text):
            return text
        long = f" (at most {self.limit} characters)" if len(text) > self.limit else ""
        message = f"{quote(text)} is not {self.what}{long}"
        raise PydanticCustomError(self.id, "{message}", {"message": message, "hint": self.hint})

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        form = {"pattern": f"^({self.pattern})$", "maxLength": self.limit}
        return {"description": self.hint, **handler(schema), **form}


def _safe(id: str, what: str, kind: type[Any], hint: str) -> Form:
    return Form(id, what, kind.form.pattern, kind.limit, hint)


_LABEL_HINT = "lower-case letters, digits and inner hyphens"

_FIELD_NAME = "[A-Za-z][A-Za-z0-9_-]*"

_SPECIFIER = r"(===?|~=|!=|<=?|>=?) ?[A-Za-z0-9.*+!_-]+"

ProviderName = Annotated[
    str, _safe("CC-50", "a provider name", safetext.DnsLabel, f"Use {_LABEL_HINT}.")
]
Label = Annotated[
    str, _safe("spec-not-a-label", "a DNS label", safetext.DnsLabel, f"Use {_LABEL_HINT}.")
]
_NAME = "a DNS label that begins with a letter"
_NAME_HINT = f"Use {_LABEL_HINT}, with a letter first."
CrdName = Annotated[str, _safe("spec-not-a-label", _NAME, safetext.Rfc1035Label, _NAME_HINT)]
Group = Annotated[
    str,
    _safe(
        "CRD-05",
        "an API group",
        safetext.DnsSubdomain,
        "Write a DNS name in lower case, such as infrastructure.acme.example.com.",
    ),
]
Kind = Annotated[
    str,
    _safe(
        "CRD-04",
        "a kind",
        safetext.KindName,
        "Write letters and digits in CamelCase, such as AcmeMachine.",
    ),
]
Version = Annotated[
    str,
    _safe(
        "spec-not-an-api-version",
        "an API version",
        safetext.VersionName,
        "Write a version such as v1alpha1.",
    ),
]
Series = Annotated[
    str,
    _safe(
        "CC-05", "a release series", safetext.SeriesName, "Write v0.1 for v0.1.0, v0.1.1 and so on."
    ),
]
Repository = Annotated[
    str,
    _safe(
        "spec-not-a-repository",
        "the https URL of a repository",
        safetext.RepositoryUrl,
        "Write a URL such as https://github.com/acme/cluster-api-provider-acme.",
    ),
]
Image = Annotated[
    str,
    _safe(
        "CC-27",
        "an image name with a registry and without a tag",
        safetext.ImageName,
        "Write a name such as ghcr.io/acme/cluster-api-acme-controller; the release adds the tag.",
    ),
]
Folder = Annotated[
    str,
    Form(
        "spec-not-a-folder",
        "a folder beside this file",
        f"(?!\\.){safetext.RelativePath.form.pattern}",
        100,
        "Write a path below this folder, with slashes and not hidden, such as blueprints.",
    ),
]
Licence = Annotated[
    str,
    _safe(
        "spec-not-a-licence",
        "an SPDX licence identifier",
        safetext.LicenceId,
        "Write an identifier such as Apache-2.0.",
    ),
]
PackageName = Annotated[
    str,
    Form(
        "package-name",
        "a Python package name",
        "[a-z_][a-z0-9_]*",
        100,
        "Use lower-case letters, digits and underscores, such as cluster_api_provider_acme.",
    ),
]
Word = Annotated[
    str,
    Form(
        "kind-word",
        "a word of kinds",
        "[A-Z][A-Za-z0-9]*",
        50,
        "Write it as kinds begin, with a capital letter first, such as VSphere.",
    ),
]
_MODULE = r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*"
_SDK_HINT = "Write what follows `import`, such as boto3 or google.cloud.compute_v1."
SdkName = Annotated[
    str, Form("sdk-name", "the import name of a Python package", _MODULE, 200, _SDK_HINT)
]
FieldName = Annotated[
    str,
    Form(
        "field-name",
        "a field name",
        _FIELD_NAME,
        63,
        "Use a letter, then letters, digits, `_` and `-`; in paths a dot separates names.",
    ),
]
SecretKey = Annotated[
    str,
    Form(
        "credentials-key",
        "a key of a Secret",
        "(?!\\.\\.?$)[-._a-zA-Z0-9]+",
        253,
        "Use letters, digits, `-`, `_` and `.` only.",
    ),
]
ApiGroupOrCore = Annotated[
    str,
    Form(
        "rbac-api-group",
        'an API group ("" is the core group)',
        f"({safetext.DnsSubdomain.form.pattern})?|\\*",
        253,
        'Write a group such as apps, or "" for pods and secrets.',
    ),
]
RbacResource = Annotated[
    str,
    Form(
        "rbac-resource",
        "a resource",
        "\\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?(/(\\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?))?",
        253,
        "Write the plural in lower case, with its subresource: deployments/scale.",
    ),
]
RbacVerb = Annotated[
    str,
    Form(
        "rbac-verb",
        "a verb",
        "\\*|[a-z]+",
        63,
        "Write a verb such as get, list, watch, create or patch.",
    ),
]
ObjectName = Annotated[
    str,
    _safe("rbac-resource-name", "the name of an object", safetext.DnsSubdomain, _LABEL_HINT),
]
ObjectApiVersion = Annotated[
    str,
    Form(
        "watch-api-version",
        "the apiVersion of a kind",
        f"({safetext.DnsSubdomain.form.pattern}/)?{safetext.VersionName.form.pattern}",
        317,
        "Write a group and a version, such as apps/v1, or v1 for ConfigMaps and Secrets.",
    ),
]
ResourceName = Annotated[
    str,
    _safe(
        "watch-resource",
        "the plural of a kind",
        safetext.DnsLabel,
        "Write it in lower case, as in URLs, such as network-attachment-definitions.",
    ),
]
_SPEC_PATH = ("the path of a field in the spec", rf"spec(\.{_FIELD_NAME})+", 500)
_PATH_HINT = "Write the names of the fields with dots, such as spec."
SpecPath = Annotated[str, Form("watch-path", *_SPEC_PATH, f"{_PATH_HINT}sshKeyRef.name.")]
ContractPath = Annotated[
    str, Form("contract-path", *_SPEC_PATH, f"{_PATH_HINT}infrastructureTemplate.")
]
ContractField = Annotated[
    str,
    Form(
        "contract-field-path",
        "the path of a field of the contract",
        "metadata|(spec|status)\\.[A-Za-z][A-Za-z0-9]*",
        100,
        "Write the part and the name of the field, such as status.failureReason.",
    ),
]
LabelKey = Annotated[
    str,
    Form(
        "watch-label",
        "the key of a label",
        f"({safetext.DnsSubdomain.form.pattern}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?",
        317,
        "Write a key such as acme.io/machine.",
    ),
]
Requirement = Annotated[
    str,
    Form(
        "dependency",
        "a Python requirement",
        r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?(\[[A-Za-z0-9._-]+(, ?[A-Za-z0-9._-]+)*\])?"
        rf"( ?{_SPECIFIER}(, ?{_SPECIFIER})*)?"
        r"""( ?; ?[A-Za-z0-9_.<>=!~'"() ,-]+)?""",
        300,
        "Write name, extras, versions and marker, such as acme-sdk[aio]>=2,<3.",
    ),
]
Line = Annotated[
    str,
    Form(
        "spec-not-a-line",
        "a single line of text without leading or trailing blanks",
        r"\S|\S[^\n]*\S",
        200,
        "Use at most 200 characters.",
    ),
]
Warning = Annotated[
    str,
    Form(
        "spec-not-a-line",
        "a single line of text without leading or trailing blanks",
        r"\S|\S[^\n]*\S",
        256,
        "Use at most 256 characters, the limit of the API server.",
    ),
]
Text = Annotated[
    str,
    Form(
        "spec-not-a-text",
        "a non-blank string",
        r"\s*\S[\s\S]*",
        4000,
        "Write some text of at most 4000 characters.",
    ),
]


T = TypeVar("T")
Many = Annotated[tuple[T, ...], Strict(False)]
"""A list in provider.yaml, stored as a tuple."""

TEXT, MAPPING, FLAG, LIST = "<text>", "<mapping>", "<flag>", "<list>"
"""Tags for the members of unions. They are in pydantic's error paths, so no key can have them."""

SHORTHAND = r"(string|integer|int32|int64|number|boolean)(\[\])?!?"


class SpecModel(BaseModel):
    """Base class for models: immutable, strict, camelCase keys, no unknown keys; built lazily."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, alias_generator=to_camel, defer_build=True
    )

    @classmethod
    def find_key(cls, attribute: str) -> str:
        """Return the key in provider.yaml of an attribute."""
        # Pydantic sets the generated aliases only of models that are built for themselves.
        return cls.model_fields[attribute].alias or to_camel(attribute)


def classify_text_or_mapping(value: Any) -> str | None:
    """Return the union tag for a string or a mapping, or None for any other value."""
    if isinstance(value, str):
        return TEXT
    return MAPPING if isinstance(value, dict | SpecModel) else None


def classify_text_mapping_or_list(value: Any) -> str | None:
    """Return the union tag for a string, a mapping or a list, or None for any other value."""
    return LIST if isinstance(value, list | tuple) else classify_text_or_mapping(value)


def classify_flag_or_mapping(value: Any) -> str | None:
    """Return the union tag for a boolean or a mapping, or None for any other value."""
    if isinstance(value, bool):
        return FLAG
    return MAPPING if isinstance(value, dict | SpecModel) else None


def _flag_or_list(value: Any) -> str | None:
    return {bool: FLAG, list: LIST, tuple: LIST}.get(type(value))


def choose_by_tag(tag: Any, expected: str) -> Discriminator:
    """Return a discriminator that reports ``spec-wrong-type`` with "must be" and ``expected``."""
    return Discriminator(
        tag, custom_error_type="spec-wrong-type", custom_error_message=f"must be {expected}"
    )


def _number(value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise PydanticCustomError("spec-wrong-type", "must be a number")
    return value


Number = Annotated[int | float, PlainValidator(_number, json_schema_input_type=float)]
Count = Annotated[int, Field(ge=0)]
Reason = Literal[
    "FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate"
]
ScalarShorthand = Annotated[
    str,
    Form(
        "field-shorthand",
        "a shorthand for a type",
        SHORTHAND,
        20,
        "Write string, boolean, integer, int32, int64 or number, [] for a list, ! if required.",
    ),
]


class Validation(SpecModel):
    """A validation rule in the Common Expression Language."""

    rule: Annotated[str, Field(min_length=1, max_length=8192)] = Field(
        description="CEL expression; `self` is the value and `oldSelf` its former value."
    )
    message: Text | None = Field(None, description="Message for the user if the rule is violated.")
    message_expression: Text | None = Field(None, description="CEL expression for the message.")
    reason: Reason | None = Field(None, description="Machine-readable reason for the rejection.")
    field_path: str | None = Field(None, description="Path to the invalid field, such as `.cidr`.")
    optional_old_self: bool | None = Field(None, description="Whether it also runs on creation.")


class NameLimits(SpecModel):
    """Limits for object names that are stricter than Kubernetes' own."""

    min_length: Count | None = Field(None, description="Minimum length in characters.")
    max_length: Count | None = Field(None, description="Maximum length in characters.")
    pattern: Annotated[str, Field(max_length=1000)] | None = Field(
        None, description="RE2 regular expression that part of the name must match."
    )
    validations: Annotated[Many[Validation], Field(min_length=1)] | None = Field(
        None, alias="x-kubernetes-validations", description="CEL rules for the name."
    )


class FieldSchema(SpecModel):
    """A field, in the vocabulary of Kubernetes structural schemas."""

    type: Literal["string", "integer", "number", "boolean", "object", "array"] | None = Field(
        None, description="JSON type of the value."
    )
    format: str | None = Field(None, max_length=64, description="Format such as int32 or cidr.")
    title: Text | None = Field(None, description="Short name for display.")
    description: Text | None = Field(None, description="Description for `kubectl explain`.")
    required: Required | None = Field(
        None, description="true for a required field, or a list of required properties."
    )
    immutable: bool | None = Field(None, description="Whether it must not change once set.")
    nullable: bool | None = Field(None, description="Whether null is allowed.")
    enum: Annotated[Many[Any], Field(min_length=1)] | None = Field(
        None, description="Allowed values."
    )
    default: Any = Field(None, description="Value of the field if it is absent.")
    example: Any = Field(None, description="Value for samples and templates.")
    pattern: Annotated[str, Field(max_length=1000)] | None = Field(
        None, description="RE2 regular expression that part of the value must match."
    )
    minimum: Number | None = Field(None, description="Minimum value.")
    maximum: Number | None = Field(None, description="Maximum value.")
    exclusive_minimum: bool | None = Field(None, description="Whether minimum is excluded.")
    exclusive_maximum: bool | None = Field(None, description="Whether maximum is excluded.")
    multiple_of: Number | None = Field(None, description="Number that divides the value.")
    min_length: Count | None = Field(None, description="Minimum length in characters.")
    max_length: Count | None = Field(None, description="Maximum length in characters.")
    min_items: Count | None = Field(None, description="Minimum number of items.")
    max_items: Count | None = Field(None, description="Maximum number of items.")
    min_properties: Count | None = Field(None, description="Minimum number of keys.")
    max_properties: Count | None = Field(None, description="Maximum number of keys.")
    items: FieldLike | None = Field(None, description="Schema of the items.")
    properties: Fields | None = Field(None, description="Fields of the object.")
    additional_properties: FieldLike | None = Field(
        None, description="Schema of the values of a map with any keys."
    )
    all_of: Alternatives | None = Field(None, description="Schemas, all of which must match.")
    any_of: Alternatives | None = Field(None, description="Schemas, any of which must match.")
    one_of: Alternatives | None = Field(None, description="Schemas, just one of which must match.")
    not_: FieldSchema | None = Field(None, alias="not", description="Schema that must not match.")
    validations: Annotated[Many[Validation], Field(min_length=1)] | None = Field(
        None, alias="x-kubernetes-validations", description="CEL rules for the value."
    )
    list_type: Literal["atomic", "set", "map"] | None = Field(
        None,
        alias="x-kubernetes-list-type",
        description="How the list is merged; atomic by default.",
    )
    list_map_keys: Annotated[Many[str], Field(min_length=1)] | None = Field(
        None, alias="x-kubernetes-list-map-keys", description="Keys that together identify an item."
    )
    map_type: Literal["atomic", "granular"] | None = Field(
        None, alias="x-kubernetes-map-type", description="How the object is merged."
    )
    int_or_string: bool | None = Field(
        None, alias="x-kubernetes-int-or-string", description="Allow both integers and strings."
    )
    preserve_unknown: bool | None = Field(
        None,
        alias="x-kubernetes-preserve-unknown-fields",
        description="Whether undeclared keys are kept.",
    )


Alternatives = Annotated[Many[FieldSchema], Field(min_length=1)]
"""Alternative limits for a value; the field itself declares the type, default and description."""
Required = Annotated[
    Annotated[bool, Tag(FLAG)] | Annotated[Many[str], Tag(LIST)],
    choose_by_tag(_flag_or_list, "true, false or a list of property names"),
]
FieldLike = Annotated[
    Annotated[ScalarShorthand, Tag(TEXT)] | Annotated[FieldSchema, Tag(MAPPING)],
    choose_by_tag(
        classify_text_or_mapping, "a shorthand such as `string!` or a schema such as {type: string}"
    ),
]
Fields = dict[FieldName, FieldLike]
