"""Build a kind's ``template`` entry: the differences between its template and the default one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from capsmith.cel_text import is_transition
from capsmith.importing.compare import RULES, Schema, compare_schemas, normalize
from capsmith.importing.fields import convert_field, convert_fields
from capsmith.importing.kinds import (
    EMBEDDED,
    Entry,
    Reserved,
    describe_categories,
    describe_object_name,
    describe_versions,
    drop_columns,
    extract_author_columns,
    extract_author_rules,
    find_contract_fields,
    find_part_limits,
    find_storage_version,
    has_contract_columns,
    list_names,
)
from capsmith.importing.outline import Version
from capsmith.manifests.crds import Crd, CrdVersion
from capsmith.manifests.parse import list_of, mapping_of, text_of
from capsmith.provider.contract_fields import complete_schema

Made = Mapping[str, Any]
_INNER = ("properties", "spec", "properties", "template", "properties", "spec")
_PARTS = ("spec", "spec.template", "spec.template.spec")
_BESIDE = {"spec": ("template",), "spec.template": ("metadata", "spec")}
"""Fields that each template has, by part."""
_CATEGORY_KEYS = ("categories", "contractCategory")
_OF_VERSIONS = ("metadata", "requiredParts", "partFields", "printerColumns", "versions")
_EMPTY: Mapping[str, Any] = {
    **{"spec": {}, "validations": [], "contractFields": {}, "partLimits": {}},
    **{"printerColumns": [], "partFields": {}, "status": {}},
}


def describe_template(
    crd: Crd, made: Made, kind: Mapping[str, Any], versions: Sequence[Version]
) -> Entry:
    """Return a ``template`` entry, assuming that the template has its kind's fields.

    ``made`` is the CRD that capsmith generates without the author's parts; ``kind`` is the kind's
    entry.  If the fields differ, :func:`describe_own_spec` adds them.
    """
    found: Entry = {}
    own_versions = describe_versions(crd, versions)
    if own_versions != {k: kind[k] for k in ("apiVersions",) if k in kind}:
        found["apiVersions"] = own_versions.get("apiVersions", [each.name for each in versions])
    found |= describe_object_name(crd)
    short = list_names(crd, "shortNames")
    if short:
        found["shortNames"] = short
    own, of_kind = describe_categories(crd), {k: kind[k] for k in _CATEGORY_KEYS if k in kind}
    if own != of_kind:
        found["categories"] = own.get("categories", [])
        found["contractCategory"] = own.get("contractCategory", True)
    has_columns = has_contract_columns(crd, made)
    if has_columns != kind.get("contractColumns", True):
        found["contractColumns"] = has_columns
    made = made if has_columns else drop_columns(made)
    if any(has_transitions(mapping_of(each.schema, *_INNER)) for each in crd.versions):
        found["transitionRules"] = True
    return _with_versions(found, crd, {each.name: _parts(crd, each, made) for each in _served(crd)})


def describe_own_spec(crd: Crd, made: Made, reserved: Reserved, written: Entry) -> Entry:
    """Return a copy of the entry ``written`` with all fields of ``spec.template.spec`` added.

    Used for templates whose fields differ from their kind's fields.
    """
    parts = {}
    if not has_contract_columns(crd, made):
        made = drop_columns(made)
    for version in _served(crd):
        inner = mapping_of(version.schema, *_INNER)
        usual = mapping_of(_schema(made, version.name), *_INNER)
        found = _parts(crd, version, made)
        contract = find_contract_fields(_spec(inner), _spec(usual), reserved)
        # A template without the embedded spec is one of a kind without it.
        without = [each for each in contract.pop("without", ()) if each != f"spec.{EMBEDDED}"]
        contract |= {"without": without} if without else {}
        found["contractFields"] = _joined({"spec": {}, **contract}, found.get("contractFields", {}))
        taken = reserved["spec"].union(mapping_of(usual, "properties")) - {EMBEDDED}
        fields = convert_fields(inner)
        found["spec"] = {name: field for name, field in fields.items() if name not in taken}
        found["validations"] = extract_author_rules(inner, usual)
        parts[version.name] = found
    kept = {key: value for key, value in written.items() if key not in (*_EMPTY, *_OF_VERSIONS)}
    return _with_versions(kept, crd, parts)


def _parts(crd: Crd, version: CrdVersion, made: Made) -> Entry:
    """Return the author's parts of a template version outside ``spec.template.spec``."""
    usual = _schema(made, version.name)
    found = find_template_parts(version.schema, usual)
    metadata = find_template_metadata(version.schema, usual)
    status: Reserved = {"spec": frozenset(), "status": frozenset()}
    contract = find_contract_fields(_status(version.schema), _status(usual), status)
    fields = _find_status_fields(version.schema, usual)
    if fields:
        found["status"] = fields
    columns = extract_author_columns(_original(crd, version.name), _version(made, version.name))
    if columns:
        found["printerColumns"] = columns
    joined = _joined(metadata.pop("contractFields", {}), contract)
    return {**found, **metadata, **({"contractFields": joined} if joined else {})}


def _find_status_fields(schema: Schema, made: Schema) -> dict[str, Any]:
    own, usual = (mapping_of(each, "properties", "status") for each in (schema, made))
    taken = mapping_of(usual, "properties")
    return {name: field for name, field in convert_fields(own).items() if name not in taken}


def _joined(one: Entry, other: Entry) -> Entry:
    without = [*one.get("without", ()), *other.get("without", ())]
    found = {**one, **other}
    return {**found, "without": without} if without else found


def _with_versions(entry: Entry, crd: Crd, parts: Mapping[str, Entry]) -> Entry:
    """Return ``entry`` with the storage version's parts, and the parts of versions that differ."""
    hub = find_storage_version(crd)
    versions = {}
    for version in _served(crd):
        own = parts[version.name]
        if version is hub:
            continue
        found = {
            key: own.get(key, _EMPTY.get(key))
            for key in dict.fromkeys((*own, *parts[hub.name]))
            if own.get(key, _EMPTY.get(key)) != parts[hub.name].get(key, _EMPTY.get(key))
        }
        if "requiredParts" in found:
            found["requiredParts"] = list_required_parts(version.schema)
        if found.get("metadata", "") is None:
            # Elsewhere it is the usual one, or there is none.
            schema = mapping_of(version.schema, *_INNER[:-1], "metadata")
            found["metadata"] = convert_field(normalize({"type": "object", **schema}))
        if found:
            versions[version.name] = found
    full = {**entry, **parts[hub.name]}
    return {**full, "versions": versions} if versions else full


def _served(crd: Crd) -> list[CrdVersion]:
    hub = find_storage_version(crd)
    return [each for each in crd.versions if each.served or each is hub]


def _spec(schema: Mapping[str, Any]) -> Entry:
    return {"properties": {"spec": schema}}


def _status(schema: Mapping[str, Any]) -> Entry:
    return {"properties": {"status": mapping_of(schema, "properties", "status")}}


def _original(crd: Crd, name: str) -> Mapping[str, Any]:
    return _version(crd.manifest.document, name)


def _schema(made: Made, name: str) -> Mapping[str, Any]:
    return mapping_of(_version(made, name), "schema", "openAPIV3Schema")


def _version(crd: Made, name: str) -> Mapping[str, Any]:
    """Return the named version of a CRD, or another version if there is none."""
    versions = list_of(crd, "spec", "versions")
    named = [mapping_of(each) for each in versions if text_of(each, "name") == name]
    return next(iter(named), mapping_of(versions[-1]) if versions else {})


def find_template_parts(schema: Schema, made: Schema) -> dict[str, Any]:
    """Return a template's ``requiredParts``, ``partLimits`` and ``partFields`` where needed.

    ``made`` is the schema that capsmith generates without the author's parts.
    """
    found: dict[str, Any] = {}
    parts, usual = list_required_parts(schema), list_required_parts(made)
    if parts != usual:
        found["requiredParts"] = parts
    limits = find_part_limits(schema, (*_PARTS, "status"))
    if limits:
        found["partLimits"] = limits
    fields = find_part_fields(schema)
    if fields:
        found["partFields"] = fields
    return found


def find_part_fields(schema: Schema) -> dict[str, Any]:
    """Return the fields next to ``spec.template`` and ``spec.template.spec``, by part."""
    found, here = {}, schema
    for part, usual in _BESIDE.items():
        here = mapping_of(here, "properties", part.rpartition(".")[2])
        fields = {name: each for name, each in convert_fields(here).items() if name not in usual}
        if fields:
            found[part] = fields
    return found


def find_template_metadata(schema: Schema, made: Schema) -> dict[str, Any]:
    """Return the keys that describe the template's metadata; empty if its schema is the default.

    ``made`` is the schema that capsmith generates without the author's parts.
    """
    keys = ("properties", "spec", "properties", "template", "properties", "metadata")
    own, generated = mapping_of(schema, *keys), mapping_of(made, *keys)
    if not own and "metadata" not in mapping_of(schema, *keys[:-1]):
        return {"contractFields": {"without": ["metadata"]}}
    if not compare_schemas(own, generated):
        return {}
    found: dict[str, Any] = {"metadata": convert_field(normalize(own))}
    if compare_schemas(own, complete_schema(own, generated)):
        found["contractFields"] = {"exact": True}
    return found


def has_transitions(schema: Any) -> bool:
    """Return whether any CEL rule in a schema reads ``oldSelf``."""
    if isinstance(schema, list):
        return any(has_transitions(each) for each in schema)
    if not isinstance(schema, Mapping):
        return False
    rules = [text_of(each, "rule") for each in list_of(schema, RULES)]
    return any(map(is_transition, rules)) or any(map(has_transitions, schema.values()))


def list_required_parts(schema: Schema) -> list[str]:
    """Return the parts of an object, such as ``spec``, that a template's schema requires."""
    found, here = ["metadata"] if "metadata" in list_of(schema, "required") else [], schema
    for part in _PARTS:
        name = part.rpartition(".")[2]
        if name in list_of(here, "required"):
            found.append(part)
        here = mapping_of(here, "properties", name)
    return found
