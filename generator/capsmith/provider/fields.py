"""What an author declares of a kind in one API version: fields, columns and settings of its CRD."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from capsmith.safetext import Identifier

if TYPE_CHECKING:
    from capsmith.provider_yaml.model import PartLimits

Schema = Mapping[str, Any]
"""A Kubernetes structural schema (OpenAPI v3 subset) as plain data."""


class Field(NamedTuple):
    """A field declared by the author, in the vocabulary of Kubernetes structural schemas."""

    name: str
    """Name in YAML, by convention in camelCase."""
    attribute: Identifier
    """Name in Python, in snake_case; never a keyword."""
    schema: Schema
    """Schema of the field. Nested objects list their required fields in it; whether this field
    itself is required is stored separately."""
    required: bool


class PrinterColumn(NamedTuple):
    """A column that ``kubectl get`` prints."""

    name: str
    type: str
    json_path: str
    priority: int = 0
    description: str = ""


class OwnField(NamedTuple):
    """The author's schema for a field defined by the contract."""

    schema: Schema
    required: bool
    exact: bool = False
    """Whether the schema is used unchanged, without properties that only the contract declares."""


class ContractFields(NamedTuple):
    """The author's schemas for fields defined by the contract, by field name."""

    spec: Mapping[str, OwnField]
    status: Mapping[str, OwnField]
    metadata: OwnField | None = None
    """Schema of ``spec.template.metadata``; only for templates."""
    without: frozenset[str] = frozenset()
    """Paths that the CRD lacks, such as ``status.failureReason``."""
    paths: Mapping[str, str] = {}
    """Paths of spec fields in the CRD, by paths in the contract."""
    has_own_spec: bool = False
    """Whether a template's spec differs from its kind's spec."""


class CrdOptions(NamedTuple):
    """The author's settings for one CRD version. The defaults change nothing."""

    contract_columns: bool = True
    required_parts: frozenset[str] | None = None
    """Top-level parts that objects must have, such as ``spec``; None for the contract's default."""
    part_limits: Mapping[str, Mapping[str, Any]] = {}
    """Additional schema keywords by part of the object, such as ``status`` or ``spec.template``."""
    part_fields: Mapping[str, tuple[Field, ...]] = {}
    """A template's fields next to ``template`` or ``spec``, by part, such as ``spec``."""
    transition_rules: bool = False
    """Whether a template also gets its kind's CEL rules that use ``oldSelf``."""
    scale: Mapping[str, str] | None = {}
    """Paths of the subresource scale by their keys in a CRD; empty for the contract's, None for no
    such subresource."""

    def limits(self, part: str) -> dict[str, Any]:
        """Return the additional schema keywords for ``part``, such as ``status``; empty if none."""
        return dict(self.part_limits.get(part, {}))

    def with_parts(
        self, required: Sequence[str] | None, limits: Mapping[Any, PartLimits] | None
    ) -> CrdOptions:
        """Return a copy with the given settings for one version. None keeps the current setting."""
        found = self
        if required is not None:
            found = found._replace(required_parts=frozenset(required))
        if limits is not None:
            plain = {
                str(part): each.model_dump(mode="json", by_alias=True, exclude_unset=True)
                for part, each in limits.items()
            }
            found = found._replace(part_limits=plain)
        return found


class VersionFields(NamedTuple):
    """The author's fields, CEL rules and printer columns for a kind in one API version."""

    spec_fields: tuple[Field, ...]
    status_fields: tuple[Field, ...]
    spec_validations: tuple[Schema, ...]
    object_validations: tuple[Schema, ...]
    printer_columns: tuple[PrinterColumn, ...]
    contract_fields: ContractFields | None = None
    options: CrdOptions = CrdOptions()
