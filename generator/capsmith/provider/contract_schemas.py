"""Convert the author's schemas of the contract's fields to plain schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from capsmith.provider.contract_fields import ContractFields, OwnField
from capsmith.provider_yaml.plain import is_required, plain

if TYPE_CHECKING:
    from capsmith.provider_yaml.fields import FieldLike
    from capsmith.provider_yaml.kind_parts import ContractFieldsSpec, TemplateVersionSpec


def contract_fields_of(written: ContractFieldsSpec | None) -> ContractFields | None:
    """Return what the author wrote, as plain schemas."""
    if written is None:
        return None
    exact = bool(written.exact)
    return ContractFields(
        _fields(written.spec, exact),
        _fields(written.status, exact),
        without=frozenset(written.without or ()),
    )


def of_template(
    kind: ContractFields | None, *written: TemplateVersionSpec | None
) -> ContractFields | None:
    """Return the schemas of a template, which repeats the spec of its kind unless it has its own.

    Of ``written`` the first that mentions something counts.
    """
    described = [each for each in written if each is not None]
    fields = next((each.contract_fields for each in described if each.contract_fields), None)
    metadata = next((each.metadata for each in described if each.metadata is not None), None)
    found = contract_fields_of(fields) or ContractFields({}, {})
    exact = fields is not None and bool(fields.exact)
    if metadata is not None:
        found = found._replace(metadata=OwnField(plain(metadata), False, exact))
    if fields is not None and fields.spec is not None:
        return found._replace(has_own_spec=True)
    if kind is None:
        return found if fields is not None or metadata is not None else None
    of_spec = {path for path in kind.without if path.startswith("spec.")}
    return found._replace(spec=kind.spec, without=found.without | of_spec)


def _fields(fields: Mapping[str, FieldLike] | None, exact: bool) -> dict[str, OwnField]:
    return {
        name: OwnField(plain(field), is_required(field), exact)
        for name, field in (fields or {}).items()
    }
