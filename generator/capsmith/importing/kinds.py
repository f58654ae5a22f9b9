"""Build a kind's entry in provider.yaml from everything that its CRD adds to the contract."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from capsmith.contract.model import Contract, ContractField, TypeShape
from capsmith.importing.compare import RULES, Schema, compare_schemas, normalize, normalize_columns
from capsmith.importing.fields import clean_description, clean_rule, convert_field, convert_fields
from capsmith.importing.outline import Outline, Version
from capsmith.importing.scale import describe_scale
from capsmith.importing.source import RESOURCE, SourceCrd
from capsmith.manifests.crds import Crd, CrdVersion
from capsmith.manifests.parse import list_of, mapping_of, text_of, texts_of
from capsmith.provider.contract_fields import complete_schema
from capsmith.provider.described_kinds import MACHINES, MANAGED
from capsmith.provider.naming import pluralise

Reserved = Mapping[str, frozenset[str]]
"""Field names that the contract reserves, keyed by part of the object, such as ``spec``."""
_CREDENTIALS = "credentials"
EMBEDDED = "bootstrapConfigSpec"
"""Field in which a control plane embeds a bootstrap configuration's spec. Another kind defines its
schema.
"""
_LIMITS = ("minProperties", "maxProperties", "nullable", "default")
_RULED = ("status", "spec.template")
"""Parts of the object whose CEL rules are extracted separately; for templates, also ``spec``."""
Entry = dict[str, Any]
_CATEGORY = "cluster-api"
_COLUMN_KEYS = ("name", "type", "jsonPath", "priority", "description")
_TEMPLATE_OPTIONAL = frozenset({"InfraCluster", "InfraMachinePool", "ControlPlane"})
"""Roles whose kinds do not need a template."""
_KUBEADM = {"group": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig"}
_WHOLE = frozenset({"ranges"})
"""Features that need all of their required fields."""
Shapes = list[tuple[str, TypeShape, TypeShape | None]]
"""A list of tuples: API version, the contract's shape for a role, and the shape for its
template."""


def make_first_entry(source: SourceCrd, shapes: Shapes, moved: Entry) -> Entry:
    """Return an entry with a kind's role, and the settings that determine default features.

    ``moved`` has the contract's fields at other paths; it is part of the entry.
    """
    entry: Entry = {"implements": source.role, **moved}
    if detect_features(source, shapes, moved).get(MANAGED):
        entry["features"] = {MANAGED: True}
    if source.role in _TEMPLATE_OPTIONAL and source.template is None:
        entry["template"] = False
    return entry


def describe_place(source: SourceCrd, head: Outline, section_group: str) -> Entry:
    """Return the keys ``scope``, ``group`` and ``plural``, each only if it is not the default.

    The result is empty for a kind with a role, because the role determines all three.
    """
    crd, found = source.crd, dict[str, Any]()
    if source.role != RESOURCE:
        return found
    if crd.scope == "Cluster":
        found["scope"] = "Cluster"
    if crd.group != head.groups.get(source.section, section_group):
        found["group"] = crd.group
    plural = text_of(crd.manifest.document, "spec", "names", "plural")
    if plural and plural != pluralise(crd.kind.lower()):
        found["plural"] = plural
    return found


def detect_features(source: SourceCrd, shapes: Shapes, moved: Entry) -> dict[str, bool]:
    """Return whether the CRDs have each of the contract's optional features.

    They have a feature if they have any of its fields.  Some features also need all their required
    fields, and no status field may require more than the contract defines.  The credentials feature
    is not included.
    """
    found: dict[str, bool] = {}
    lacking: set[str] = set()
    for name, shape, template in shapes:
        for crd, part_shape in ((source.crd, shape), (source.template, template)):
            if crd is None or part_shape is None:
                continue
            version = _version(crd, name)
            schema = version.schema
            for part, fields in (("spec", part_shape.spec), ("status", part_shape.status)):
                there = mapping_of(schema, "properties", part, "properties")
                for field in fields.values():
                    if field.feature and field.feature != _CREDENTIALS:
                        # A kind has a feature in all versions or in none, so checking one version
                        # is enough.
                        found[field.feature] = found.get(field.feature, False) or (
                            field.name in there
                        )
                        is_lacking = field.required and field.name not in there
                        if (is_lacking and field.feature in _WHOLE) or (
                            part == "status" and not _is_writable(there, field, version.storage)
                        ):
                            lacking.add(field.feature)
    # Without a field that the feature requires, or with one that the manager cannot fill in, these
    # are other fields with the same names.
    found |= dict.fromkeys(lacking, False)
    if moved:
        found[MACHINES] = True  # only fields of this feature can be at other paths
    if source.role == "ControlPlane" and not (found.get("replicas") or _names_machines(source)):
        found[MACHINES] = False
    if source.role == "ControlPlane" and not (found.get(MACHINES) or found.get("replicas")):
        # Without replicas and a template for Machines, there are no Machines.
        found[MANAGED] = True
    return found


def _is_writable(there: Schema, field: ContractField, is_stored: bool) -> bool:
    """Return whether the manager can write a field of the status that a CRD may have.

    The contract defines all that the CRD requires, and in the storage version, which the manager
    writes, the field has the contract's type.
    """
    own = mapping_of(there, field.name)
    if not own:
        return True
    is_other = own.get("type") != field.schema.get("type")
    return not (is_stored and is_other) and not _requires_more(own, field.schema)


def _requires_more(own: Any, contract: Any) -> bool:
    if not isinstance(own, Mapping) or not isinstance(contract, Mapping):
        return False
    mine, theirs = (mapping_of(each, "properties") for each in (own, contract))
    unknown = set(texts_of(normalize(own), "required")) - set(theirs)
    if theirs and unknown:
        return True
    below = [(mine[name], theirs[name]) for name in theirs if name in mine]
    return any(
        _requires_more(one, other)
        for one, other in (*below, (own.get("items"), contract.get("items")))
    )


def _names_machines(source: SourceCrd) -> bool:
    """Return whether any part of a control plane refers to the infrastructure of Machines."""
    for version in source.crd.versions:
        spec = mapping_of(version.schema, "properties", "spec", "properties")
        template = mapping_of(spec, "machineTemplate", "properties")
        inner = mapping_of(template, "spec", "properties")
        if any(name.startswith("infrastructure") for name in (*spec, *template, *inner)):
            return True
    return False


def list_shapes(role: str, versions: Mapping[str, Contract]) -> Shapes:
    """Return the contract's shapes for a role and for its template, for each API version."""
    return [
        (name, contract.types[role], contract.types.get(f"{role}Template"))
        for name, contract in versions.items()
        if role in contract.types
    ]


def find_storage_version(crd: Crd) -> CrdVersion:
    """Return the storage version, or the last version if none is marked as such."""
    return next((each for each in crd.versions if each.storage), crd.versions[-1])


def extract_author_parts(
    version: CrdVersion, columns: Mapping[str, Any], made: Mapping[str, Any], reserved: Reserved
) -> Entry:
    """Return the author's additions to one version of a CRD: fields, rules and printer columns.

    ``columns`` is the version's entry in the original manifest.  ``made`` is the entry that
    capsmith would generate without the author's additions.
    """
    entry: Entry = {}
    generated = mapping_of(made, "schema", "openAPIV3Schema", "properties")
    for part in ("spec", "status"):
        schema = mapping_of(version.schema, "properties", part)
        # Requirements of a status are limits on the whole status.  capsmith generates no required
        # status fields; `partLimits` lists them instead.
        fields = convert_fields(schema if part == "spec" else {**schema, "required": []})
        taken = mapping_of(generated, part, "properties")
        own = {
            name: field for name, field in fields.items() if name not in reserved[part].union(taken)
        }
        if own:
            entry[part] = own
    usual = mapping_of(made, "schema", "openAPIV3Schema")
    contract = find_contract_fields(version.schema, usual, reserved)
    if contract:
        entry["contractFields"] = contract
    rules = extract_author_rules(
        mapping_of(version.schema, "properties", "spec"), generated.get("spec")
    )
    if rules:
        entry["validations"] = rules
    object_rules = extract_author_rules(
        version.schema, mapping_of(made, "schema", "openAPIV3Schema")
    )
    if object_rules:
        entry["objectValidations"] = object_rules
    listed = extract_author_columns(columns, made)
    if listed:
        entry["printerColumns"] = listed
    limits = find_part_limits(version.schema, ("spec", "status"))
    if limits:
        entry["partLimits"] = limits
    parts = find_required_parts(version.schema)
    if parts is not None:
        entry["requiredParts"] = parts
    return entry


def find_version_differences(parts: Entry, hub: Entry, schema: Mapping[str, Any]) -> Entry:
    """Return the keys that differ from the storage version. Descriptions are ignored.

    ``parts`` and ``hub`` are the entries for the version and for the storage version.  ``schema``
    is the version's schema; its required parts are listed if they differ from the storage
    version's.
    """
    empty: Mapping[str, Any] = {
        **{"spec": {}, "status": {}, "validations": [], "objectValidations": []},
        **{"printerColumns": [], "contractFields": {}, "partLimits": {}},
    }
    found = {
        key: parts.get(key, nothing)
        for key, nothing in empty.items()
        if _without_texts(parts.get(key, nothing)) != _without_texts(hub.get(key, nothing))
    }
    if parts.get("requiredParts") != hub.get("requiredParts"):
        is_required = "spec" in list_of(schema, "required")
        found["requiredParts"] = ["spec"] if is_required else []
    return found


def _without_texts(value: Any) -> Any:
    """Return fields without their descriptions; a field named ``description`` is kept."""
    if isinstance(value, Mapping):
        return {
            key: _without_texts(below)
            for key, below in value.items()
            if not (key == "description" and "type" in value and isinstance(below, str))
        }
    return [_without_texts(each) for each in value] if isinstance(value, list) else value


def describe_names(crd: Crd, made: Mapping[str, Any]) -> Entry:
    """Return the keys for a kind's names and columns, each only if it is not the default.

    The keys are ``description``, ``shortNames``, ``categories``, ``contractCategory``,
    ``contractColumns``, ``objectName`` and ``scale``.  ``made`` is the CRD that capsmith generates
    without the author's parts.
    """
    entry: Entry = {}
    description = text_of(find_storage_version(crd).schema, "description")
    usual = _description(made)
    if clean_description(description) and clean_description(description) != usual:
        entry["description"] = clean_description(description)
    generated = texts_of(made, "spec", "names", "shortNames")
    if list_names(crd, "shortNames") != list(generated):
        entry["shortNames"] = list_names(crd, "shortNames")
    entry |= describe_categories(crd)
    if not has_contract_columns(crd, made):
        entry["contractColumns"] = False
    return entry | describe_object_name(crd) | describe_scale(crd, made)


def describe_object_name(crd: Crd) -> Entry:
    """Return an ``objectName`` entry with the CRD's limits on object names; empty if none."""
    schema = mapping_of(
        find_storage_version(crd).schema, "properties", "metadata", "properties", "name"
    )
    limits = {key: value for key, value in schema.items() if key not in ("type", "description")}
    if RULES in limits:
        limits[RULES] = [clean_rule(rule) for rule in list_of(schema, RULES)]
    return {"objectName": limits} if limits else {}


def find_bootstrap_kind(crd: Crd, kinds: Iterable[str]) -> Any:
    """Return the bootstrap kind for a control plane's Machines, or None if the default applies.

    KubeadmConfig is returned if another provider defines the kind, which is the case if there are
    no ``kinds``, or if the control plane's embedded bootstrap configuration accepts any fields.
    The CRDs do not name the kind in this case.
    """
    spec = mapping_of(find_storage_version(crd).schema, "properties", "spec", "properties")
    if not list(kinds) or "x-kubernetes-preserve-unknown-fields" in mapping_of(spec, EMBEDDED):
        return _KUBEADM
    return None


def _description(made: Mapping[str, Any]) -> str:
    versions = list_of(made, "spec", "versions")
    return text_of(versions[0], "schema", "openAPIV3Schema", "description") if versions else ""


def extract_author_rules(spec: Mapping[str, Any], made: Any) -> list[Any]:
    """Return the CEL rules in the schema ``spec`` that the generated schema ``made`` lacks."""
    generated = normalize(mapping_of(made)).get(RULES, [])
    kept = []
    for rule in list_of(spec, RULES):
        (plain,) = normalize({RULES: [rule]}).get(RULES) or (None,)
        if plain not in generated:
            kept.append(clean_rule(rule))
    return kept


def _version(crd: Crd, name: str) -> CrdVersion:
    return next((each for each in crd.versions if each.name == name), find_storage_version(crd))


def describe_versions(crd: Crd, versions: Sequence[Version]) -> Entry:
    """Return the ``apiVersions`` entry for a CRD.

    Empty if the CRD's versions and settings are exactly those in ``versions``.
    """
    originals = {
        text_of(each, "name"): mapping_of(each)
        for each in list_of(crd.manifest.document, "spec", "versions")
    }
    present = [each for each in versions if each.name in originals]
    entries = [_entry(each, originals[each.name]) for each in present]
    if len(present) == len(versions) and all(isinstance(each, str) for each in entries):
        return {}
    return {"apiVersions": entries}


def _entry(version: Version, original: Mapping[str, Any]) -> str | Entry:
    entry: Entry = {"name": version.name}
    if bool(original.get("served")) != version.served:
        entry["served"] = bool(original.get("served"))
    if original.get("storage") is True and not version.storage:
        entry["storage"] = True
    deprecated, warning = bool(original.get("deprecated")), text_of(original, "deprecationWarning")
    if (deprecated, warning) != (version.deprecated, version.warning):
        entry["deprecated"] = deprecated
        if deprecated and warning:
            entry["deprecationWarning"] = warning
    return entry if len(entry) > 1 else version.name


def list_names(crd: Crd, key: str) -> list[str]:
    """Return the names that a CRD lists under ``key``: ``shortNames`` or ``categories``."""
    return [name.strip() for name in texts_of(crd.manifest.document, "spec", "names", key)]


def describe_categories(crd: Crd) -> Entry:
    """Return ``categories`` and ``contractCategory``, each only if it is not the default.

    ``contractCategory`` is set only for CRDs without the category ``cluster-api``.
    """
    found = list_names(crd, "categories")
    own = list(dict.fromkeys(name for name in found if name != _CATEGORY))
    entry: Entry = {"categories": own} if own else {}
    return entry if _CATEGORY in found else {**entry, "contractCategory": False}


def has_contract_columns(crd: Crd, made: Mapping[str, Any]) -> bool:
    """Return whether every served version has all printer columns in the generated CRD ``made``."""
    generated = {text_of(each, "name"): each for each in list_of(made, "spec", "versions")}
    return all(
        column in normalize_columns(version)
        for version in list_of(crd.manifest.document, "spec", "versions")
        if mapping_of(version).get("served")
        for column in normalize_columns(generated.get(text_of(version, "name"), {}))
    )


def extract_author_columns(version: Mapping[str, Any], made: Mapping[str, Any]) -> list[Entry]:
    """Return a version's printer columns that are not in the generated version ``made``."""
    generated = normalize_columns(made)
    kept = []
    # Compared in the normal form, but written as the CRD has it.
    for column, plain in zip(_columns(version), normalize_columns(version), strict=True):
        if plain not in generated:
            entry = {key: column[key] for key in _COLUMN_KEYS if column.get(key)}
            if isinstance(entry.get("description"), str):
                entry["description"] = clean_description(entry["description"])
            entry["jsonPath"] = text_of(column, "jsonPath").strip()
            others = {key: value for key, value in column.items() if key not in _COLUMN_KEYS}
            kept.append({**entry, **others})
    return kept


def drop_columns(crd: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a generated CRD without printer columns."""
    versions: Iterable[Any] = list_of(crd, "spec", "versions")
    kept = [
        {key: value for key, value in mapping_of(each).items() if key != "additionalPrinterColumns"}
        for each in versions
    ]
    return {**crd, "spec": {**mapping_of(crd, "spec"), "versions": kept}}


def _columns(version: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    listed = list_of(version, "additionalPrinterColumns")
    return [column for column in listed if isinstance(column, Mapping)]


def find_contract_fields(
    schema: Schema, made: Schema, reserved: Reserved, *, has_required: bool = True
) -> dict[str, Any]:
    """Return a kind's ``contractFields`` entry; empty if the kind uses the contract's schemas.

    ``made`` is the schema that capsmith generates for the kind without the author's parts.  Fields
    in ``reserved`` that are missing from it belong to another contract version or to a disabled
    feature.
    """
    found: dict[str, Any] = {}
    without, is_exact = [], False
    for part in ("spec", "status"):
        own, generated = (mapping_of(each, "properties", part) for each in (schema, made))
        fields = _contract_fields(own, generated, reserved[part], has_required and part == "spec")
        if fields:
            found[part] = {name: field for name, (field, _) in fields.items()}
        is_exact |= any(is_less for _, is_less in fields.values())
        there = mapping_of(own, "properties")
        without += [
            f"{part}.{name}" for name in mapping_of(generated, "properties") if name not in there
        ]
    if without:
        found["without"] = without
    return {**found, "exact": True} if is_exact else found


def _contract_fields(
    own: Schema, made: Schema, reserved: frozenset[str], has_required: bool
) -> dict[str, tuple[Any, bool]]:
    """Return the overriding fields by name, and whether each lacks properties of the contract."""
    required, usual = (set(texts_of(each, "required")) for each in (own, made))
    generated, found = mapping_of(made, "properties"), {}
    known = reserved.union(generated) - {EMBEDDED}
    for name, field in mapping_of(own, "properties").items():
        if name not in known or not isinstance(field, Mapping):
            continue
        usual_field = mapping_of(generated, name)
        is_other = name not in generated
        # Whether a field is required is not part of its own schema, so it is compared separately.
        is_other |= has_required and (name in required) is not (name in usual)
        if is_other or compare_schemas(field, usual_field):
            is_less = bool(compare_schemas(field, complete_schema(field, usual_field)))
            written = convert_field(normalize(field), has_required and name in required)
            found[str(name)] = (written, is_less)
    return found


def list_reserved_fields(
    role: str, followed: Collection[str], contracts: Mapping[str, Contract]
) -> Reserved:
    """Return the field names that any contract version reserves for a role.

    Fields for credentials are not included.  The v1beta1 failure domain is included only if one of
    the provider's versions has contract version v1beta1.
    """
    found: dict[str, frozenset[str]] = {"spec": frozenset(), "status": frozenset()}
    for contract in contracts.values():
        shape = contract.types.get(role)
        for part, fields in (("spec", shape.spec), ("status", shape.status)) if shape else ():
            found[part] |= {each.name for each in fields.values() if each.feature != _CREDENTIALS}
    if "v1beta1" not in followed:
        found["spec"] -= {"failureDomain"}
    return found


def find_required_parts(schema: Schema) -> list[str] | None:
    """Return a kind's ``requiredParts`` entry, or None if the default applies.

    The entry is ``["spec"]`` if objects must have a spec, else ``[]``. By default, a spec is
    required if any of its fields is.
    """
    is_usual = bool(list_of(mapping_of(schema, "properties", "spec"), "required"))
    is_required = "spec" in list_of(schema, "required")
    if is_usual == is_required:
        return None
    return ["spec"] if is_required else []


def find_part_limits(schema: Schema, parts: Collection[str]) -> dict[str, Any]:
    """Return the schema limits on the given parts of an object, such as ``spec.template``."""
    found = {}
    for part in parts:
        keys = [step for name in part.split(".") for step in ("properties", name)]
        here = normalize(mapping_of(schema, *keys))
        limits = {key: here[key] for key in _LIMITS if key in here}
        if RULES in here and (part in _RULED or (part == "spec" and "spec.template" in parts)):
            limits[RULES] = here[RULES]
        required = here.get("required") if part == "status" else None
        if required:
            limits["required"] = required
        if limits:
            found[part] = limits
    return found
