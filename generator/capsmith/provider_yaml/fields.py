"""Fields of the provider's kinds: Kubernetes' structural-schema vocabulary, and its shorthand."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    PlainValidator,
    Strict,
    Tag,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from capsmith.provider_yaml.forms import FieldName, Form, Text

T = TypeVar("T")
Many = Annotated[tuple[T, ...], Strict(False)]
"""A list in the file."""

TEXT, MAPPING, FLAG, LIST = "<text>", "<mapping>", "<flag>", "<list>"
"""Tags of unions: they show up in pydantic's locations, and can be no keys of a document."""

SHORTHAND = r"(string|integer|int32|int64|number|boolean)(\[\])?!?"


class Part(BaseModel):
    """A mapping of the file: no unknown keys, no conversions, keys in camelCase.

    Validators are built when the first description is read: one for the whole description, instead
    of another for each part of it.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, alias_generator=to_camel, defer_build=True
    )


def text_or_mapping(value: Any) -> str | None:
    """Return the tag of a value that may be a text or a mapping."""
    if isinstance(value, str):
        return TEXT
    return MAPPING if isinstance(value, dict | Part) else None


def text_mapping_or_list(value: Any) -> str | None:
    """Return the tag of a value that may be a text, a mapping or a list."""
    return LIST if isinstance(value, list | tuple) else text_or_mapping(value)


def flag_or_mapping(value: Any) -> str | None:
    """Return the tag of a value that may be true, false or a mapping."""
    if isinstance(value, bool):
        return FLAG
    return MAPPING if isinstance(value, dict | Part) else None


def _flag_or_list(value: Any) -> str | None:
    if isinstance(value, bool):
        return FLAG
    return LIST if isinstance(value, list | tuple) else None


def one_of_two(tag: Any, expected: str) -> Discriminator:
    """Choose between two shapes; a third is the finding ``spec-wrong-type``."""
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


class Validation(Part):
    """One rule in the Common Expression Language."""

    rule: Annotated[str, Field(min_length=1, max_length=8192)] = Field(
        description="CEL expression; `self` is the value, `oldSelf` the one before the update."
    )
    message: Text | None = Field(None, description="The message for the user when the rule fails.")
    message_expression: Text | None = Field(None, description="CEL expression for the message.")
    reason: Reason | None = Field(None, description="Machine-readable reason for the rejection.")
    field_path: str | None = Field(None, description="The field to blame, such as `.cidr`.")
    optional_old_self: bool | None = Field(None, description="Whether it also runs on creation.")


class NameLimits(Part):
    """Limits for the names of objects, besides those of Kubernetes."""

    min_length: Count | None = Field(None, description="Fewest characters.")
    max_length: Count | None = Field(None, description="Most characters.")
    pattern: Annotated[str, Field(max_length=1000)] | None = Field(
        None, description="RE2 regular expression; unanchored."
    )
    validations: Annotated[Many[Validation], Field(min_length=1)] | None = Field(
        None, alias="x-kubernetes-validations", description="Rules in CEL."
    )


class FieldSchema(Part):
    """A field, in the vocabulary of Kubernetes structural schemas."""

    type: Literal["string", "integer", "number", "boolean", "object", "array"] | None = Field(
        None, description="JSON type of the value."
    )
    format: str | None = Field(None, max_length=64, description="Such as int32, cidr, date-time.")
    title: Text | None = Field(None, description="Short name for display.")
    description: Text | None = Field(None, description="Text of `kubectl explain`.")
    required: Required | None = Field(
        None, description="true: this field must be set; a list: those properties must be."
    )
    immutable: bool | None = Field(
        None, description="Whether the value may never change once it is set."
    )
    nullable: bool | None = Field(None, description="Whether null is allowed.")
    enum: Annotated[Many[Any], Field(min_length=1)] | None = Field(
        None, description="The values that are allowed."
    )
    default: Any = Field(None, description="The value when none is given.")
    example: Any = Field(
        None, description="A value for samples and templates, where none can be derived."
    )
    pattern: Annotated[str, Field(max_length=1000)] | None = Field(
        None, description="RE2 regular expression; unanchored."
    )
    minimum: Number | None = Field(None, description="Smallest value.")
    maximum: Number | None = Field(None, description="Greatest value.")
    exclusive_minimum: bool | None = Field(None, description="Whether minimum itself is excluded.")
    exclusive_maximum: bool | None = Field(None, description="Whether maximum itself is excluded.")
    multiple_of: Number | None = Field(None, description="The value is a multiple of this.")
    min_length: Count | None = Field(None, description="Fewest characters.")
    max_length: Count | None = Field(None, description="Most characters.")
    min_items: Count | None = Field(None, description="Fewest items.")
    max_items: Count | None = Field(None, description="Most items.")
    min_properties: Count | None = Field(None, description="Fewest keys.")
    max_properties: Count | None = Field(None, description="Most keys.")
    items: FieldLike | None = Field(None, description="The schema of an item.")
    properties: Fields | None = Field(None, description="The fields of the object.")
    additional_properties: FieldLike | None = Field(
        None, description="The schema of a value of the map; its keys are free."
    )
    all_of: Alternatives | None = Field(None, description="Limits that all hold.")
    any_of: Alternatives | None = Field(None, description="Limits of which at least one holds.")
    one_of: Alternatives | None = Field(None, description="Limits of which exactly one holds.")
    not_: FieldSchema | None = Field(None, alias="not", description="Limits that do not hold.")
    validations: Annotated[Many[Validation], Field(min_length=1)] | None = Field(
        None, alias="x-kubernetes-validations", description="Rules in CEL."
    )
    list_type: Literal["atomic", "set", "map"] | None = Field(
        None,
        alias="x-kubernetes-list-type",
        description="How the list is merged; atomic by default.",
    )
    list_map_keys: Annotated[Many[str], Field(min_length=1)] | None = Field(
        None, alias="x-kubernetes-list-map-keys", description="Keys that identify an item."
    )
    map_type: Literal["atomic", "granular"] | None = Field(
        None, alias="x-kubernetes-map-type", description="How the object is merged."
    )
    int_or_string: bool | None = Field(
        None, alias="x-kubernetes-int-or-string", description="An integer or a string."
    )
    preserve_unknown: bool | None = Field(
        None,
        alias="x-kubernetes-preserve-unknown-fields",
        description="Whether undeclared keys are kept.",
    )


Alternatives = Annotated[Many[FieldSchema], Field(min_length=1)]
"""Limits of a value that the field beside them declares: no types, defaults or descriptions."""
Required = Annotated[
    Annotated[bool, Tag(FLAG)] | Annotated[Many[str], Tag(LIST)],
    one_of_two(_flag_or_list, "true, false or a list of property names"),
]
FieldLike = Annotated[
    Annotated[ScalarShorthand, Tag(TEXT)] | Annotated[FieldSchema, Tag(MAPPING)],
    one_of_two(text_or_mapping, "a shorthand such as `string!` or a schema such as {type: string}"),
]
Fields = dict[FieldName, FieldLike]
