"""Fields that differ between API versions of a kind: known versions, and fields that are filled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capsmith.contract.model import Contract
from capsmith.provider.draft import Draft, DraftKind
from capsmith.provider.model import Field
from capsmith.provider.new_resource import fields_of
from capsmith.provider.version_fields import PartChanges, part_changes
from capsmith.resolving.checks.columns import check_columns
from capsmith.resolving.checks.fields import check_fields
from capsmith.yamldoc.place import Place
from capsmith.yamldoc.quote import did_you_mean, shown

if TYPE_CHECKING:
    from capsmith.provider_yaml.sections import VersionFieldsSpec


def check_version_fields(
    draft: Draft, kind: DraftKind, contracts: list[Contract], place: Place
) -> None:
    """Report ``version-fields-unknown``, ``-stored`` and ``-required``, and below as for fields."""
    # A version that the kind is not in is reported with the versions of the kind.
    versions = {version.name: version for version in (*draft.api_versions, *kind.versions)}
    for name, written in (kind.spec.versions or {}).items():
        here = place.at("versions", name)
        if name not in versions:
            message = f"{shown(name)} is not an API version of this provider"
            hint = did_you_mean(name, versions) or "Declare it in `apiVersions`."
            here.error_at_key("version-fields-unknown", message, hint)
            continue
        if versions[name].storage:
            message = f"{shown(name)} is the storage version, which has the fields of the kind"
            hint = "Declare its fields in `spec` and `status` of the kind itself, not here."
            here.error_at_key("version-fields-stored", message, hint)
            continue
        own = {"spec": written.spec, "status": written.status}
        check_fields(draft, kind.spec.model_copy(update=own), contracts, here)
        merged = {part: fields or getattr(kind.spec, part) for part, fields in own.items()}
        columns = {"printer_columns": written.printer_columns}
        check_columns(kind.spec.model_copy(update=merged | columns), contracts, here)
        _required(kind, name, written, place)


def _required(kind: DraftKind, version: str, written: VersionFieldsSpec, place: Place) -> None:
    """Report required fields that an object of the other version leaves empty.

    Where the other version has fields of its own, the author's conversion can fill them, which a
    test of the repository checks.
    """
    if written.spec is None:
        return
    stored = next((each.name for each in kind.versions if each.storage), "")
    changes = part_changes("spec", fields_of(written.spec), fields_of(kind.spec.spec))
    here = place.at("versions", version, "spec")
    for field in () if changes.hub_changes else changes.spoke_changes:
        if _is_needed(field):
            message = f"{version} requires {shown(field.name)}, but {stored} has no value for it"
            hint = f"Give it a default in {version}, do not require it, or keep it in {stored}."
            here.error_at_key("version-fields-required", message, hint, field.name)
    for field, why in _unfilled_in_hub(changes, fields_of(kind.spec.spec)):
        message = f"{stored} requires {shown(field.name)}, which {why} in {version}"
        hint = f"Give it a default, or do not require it: objects are stored in {stored}."
        place.error_at_key("version-fields-required", message, hint, "spec", field.name)


def _unfilled_in_hub(changes: PartChanges, hub: tuple[Field, ...]) -> list[tuple[Field, str]]:
    spoke = {field.name: field for field in changes.spoke}
    changed = {field.name for field in changes.hub_changes}
    found = []
    for field in filter(_is_needed, hub):
        if field.name in changed:
            if not changes.spoke_changes:
                found.append((field, "does not exist"))
        elif not spoke[field.name].required and "default" not in spoke[field.name].schema:
            found.append((field, "is optional"))
    return found


def _is_needed(field: Field) -> bool:
    return field.required and "default" not in field.schema
