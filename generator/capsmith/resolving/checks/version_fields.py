"""Fields that differ between API versions of a kind: known versions, and fields that are filled."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from typing import TYPE_CHECKING

from capsmith.contract.model import Contract
from capsmith.provider.described_kinds import MACHINES
from capsmith.provider.draft import Draft, DraftKind, DraftVersion
from capsmith.provider.model import Field
from capsmith.provider.resources import fields_of
from capsmith.provider.versions import PartChanges, part_changes
from capsmith.provider_yaml.model import TemplateSpec
from capsmith.resolving.checks.fields import check_fields
from capsmith.resolving.checks.names import repeats
from capsmith.resolving.checks.versions import check_contract_labels
from capsmith.yamldoc.quote import did_you_mean, listed, shown
from capsmith.yamldoc.reporter import Place

if TYPE_CHECKING:
    from capsmith.provider_yaml.model import ApiVersionSpec, KindSpec, VersionFieldsSpec


def check_kind_versions(draft: Draft, kind: DraftKind, place: Place) -> None:
    """Report ``kind-version-*``, GEN-02, GEN-08 and MP-07, also for the template of the kind."""
    template = kind.spec.template
    if isinstance(template, TemplateSpec) and template.api_versions is not None:
        here = place.at("template", "apiVersions")
        _named(draft, template.api_versions, kind.template_versions, here)
    if kind.spec.api_versions is None:
        return
    here, names = place.at("apiVersions"), [each.name for each in kind.versions]
    _named(draft, kind.spec.api_versions, kind.versions, here)
    followed = {version.contract for version in kind.versions}
    served = {each.contract for each in draft.api_versions if each.served}
    for contract in sorted(served - followed) if kind.spec.implements != "Resource" else ():
        message = f"{shown(kind.name)} is in no API version that follows {contract}"
        here.error("GEN-08", message, "Add the API version of that contract.")
    known = {each.name for each in draft.api_versions}
    for name in kind.spec.versions or {}:
        if name in known and name not in names:
            message = f"{shown(kind.name)} is not in {shown(name)}"
            hint = "Remove these fields, or add the version to `apiVersions` of the kind."
            place.error_at_key("kind-version-unknown", message, hint, "versions", name)
    _machines(draft, kind, set(names), place)


def _named(
    draft: Draft,
    written: Sequence[str | ApiVersionSpec],
    chosen: Sequence[DraftVersion],
    place: Place,
) -> None:
    names = [each if isinstance(each, str) else each.name for each in written]
    repeats(names, place)
    known = {each.name for each in draft.api_versions}
    for index, name in enumerate(names):
        if name not in known:
            message = f"{shown(name)} is not an API version of this provider"
            hint = did_you_mean(name, known) or "Declare it in `apiVersions` at the top."
            place.error("kind-version-unknown", message, hint, index)
    check_contract_labels(chosen, place)
    stored = [each for each in chosen if each.storage]
    if len(stored) != 1:
        message = f"exactly one version must be the storage version, but {len(stored)} are"
        hint = "Add the storage version of `apiVersions` at the top, or set `storage: true` on one."
        place.error("kind-version-stored", message, hint)
    elif not stored[0].served:
        message = f"{shown(stored[0].name)} is the storage version, so it must be served"
        place.error(
            "GEN-02", message, "Remove `served: false`, or set `storage: true` on another version."
        )


def _machines(draft: Draft, pool: DraftKind, named: Set[str], place: Place) -> None:
    """Core reads the machines of a pool in the version of the pool (MP-07)."""
    if MACHINES not in pool.features or pool.machine_kind is None:
        return
    for kind in draft.kinds:
        own = {each.name for each in kind.versions}
        if kind.name == pool.machine_kind and not named <= own:
            message = f"{shown(kind.name)} is not in {listed(sorted(named - own))}"
            hint = "Give the machines of a pool all API versions of the pool."
            place.error("MP-07", message, hint, "apiVersions")


# What client-go's parser reads as one name: all but its terminators.
_NAME = r"(?:[^\s.,\[\]$@{}\\]|\\.)+"
_OPERAND = r"(?:[A-Za-z0-9_/-]|\\.)+"
_QUOTED = r"'(?:[^'\\\n]|\\.)+'|\"(?:[^\"\\\n]|\\.)+\""
_VALUE = rf"(?:{_QUOTED}|-?[0-9]+(?:\.[0-9]+)?|true|false)"
_FILTER = rf"\?\(@(?:\.{_OPERAND})+ ?(?:==|!=|<=?|>=?) ?{_VALUE}\)"
_INDEX = rf"\[(?:{_QUOTED}|\*|-?[0-9]+|-?[0-9]*:-?[0-9]*|{_FILTER})\]"
_PATH = re.compile(rf"(?:\.{_NAME}(?:{_INDEX})*)+")
_FIRST = re.compile(r"\.(spec|status)\.([A-Za-z0-9_-]+)")


def check_columns(described: KindSpec, contracts: list[Contract], place: Place) -> None:
    """Report ``column-path``, ``column-path-unknown`` and ``spec-repeated``."""
    seen: set[str] = set()
    for index, column in enumerate(described.printer_columns or ()):
        here = place.at("printerColumns", index)
        if column.name in seen:
            message = f"duplicate column {shown(column.name)}"
            here.warning("spec-repeated", message, "Give it another name.", "name")
        seen.add(column.name)
        if not _PATH.fullmatch(column.json_path):
            message = f"{shown(column.json_path)} is not a valid JSON path"
            hint = (
                'Write a path such as .spec.size or .status.conditions[?(@.type=="Ready")].status.'
            )
            here.error("column-path", message, hint, "jsonPath")
        elif first := _FIRST.match(column.json_path):
            _exists(first[1], first[2], described, contracts, here)


def _exists(
    part: str, name: str, described: KindSpec, contracts: list[Contract], here: Place
) -> None:
    own = described.spec if part == "spec" else described.status
    known = set(own or {})
    for contract in contracts:
        shape = contract.types[described.implements]
        known |= set(shape.spec if part == "spec" else shape.status)
    if name not in known:
        message = f"unknown field {shown(name)} in {part}: the column stays empty"
        here.warning("column-path-unknown", message, did_you_mean(name, known), "jsonPath")


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
