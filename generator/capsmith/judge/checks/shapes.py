"""Check CRD schemas against the field paths that core reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from capsmith.judge.checks.registry import Context, Violation, check
from capsmith.manifests.crds import (
    OPEN,
    Crd,
    CrdVersion,
    describe,
    find_field,
    is_open,
    is_required,
    walk_schema,
)
from capsmith.manifests.parse import list_of, mapping_of


@dataclass(frozen=True, slots=True)
class SchemaPart:
    """A field path, and the JSON type that core expects there."""

    path: str
    """Dotted path; ``[]`` means the items of a list, ``{}`` the values of a map."""
    type: str
    """JSON type: ``boolean``, ``string``, ``integer``, ``object``, ``map`` or ``list``."""
    matters: str = ""
    """Condition under which a violation has the rule's effect; empty if it always has."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Fields to check as a group. The others are checked only if the first is declared."""

    parts: tuple[SchemaPart, ...]
    """Field paths with their types. If the first field is declared, all others are checked, too."""
    needed: bool = False
    """Whether the first field must be declared."""
    absent_is_harmless: bool = False
    """Whether a missing first field is only advice, while a wrong type has the rule's effect."""
    optional: tuple[str, ...] = ()
    """Paths of fields that the schema must not require."""
    optional_matters: str = ""
    """Condition under which a required field has the rule's effect; empty if it always has."""
    subresource: str = ""
    """Subresource that must exist if the first field is declared."""
    subresource_values: Mapping[str, Any] = field(default_factory=dict)
    """Values that the subresource must have."""
    subresource_matters: str = ""
    """Condition under which a wrong or missing subresource has the rule's effect; empty if it
    always has."""
    when: str = ""
    """Field path. If set, nothing is checked unless this field is declared."""


@check("schema-paths", Parts)
def check_schema_paths(context: Context, params: Parts) -> Iterator[Violation]:
    """Each listed field has the type that core expects; core fails on any other type."""
    for crd, version in context.versions():
        where = f"{crd.kind} {version.name}"
        if params.when and find_field(version.schema, params.when) is None:
            continue
        # The first path decides: if the kind does not have the feature at all, the others need not
        # be declared.
        present = find_field(version.schema, params.parts[0].path) is not None
        if not present:
            if params.needed and not is_open(version.schema, params.parts[0].path):
                expected = params.parts[0]
                yield Violation(
                    crd.manifest,
                    f"{where}: {expected.path} is not declared; expected {expected.type}",
                    path=crd.schema_path(version.name, expected.path),
                    harmless=params.absent_is_harmless,
                )
            continue
        for part in params.parts:
            yield from _typed(crd, version, part)
        for complaint in _subresource(version, params):
            yield Violation(
                crd.manifest,
                f"{where}: {complaint}",
                path=crd.schema_path(version.name, params.parts[0].path),
                when=params.subresource_matters,
            )
        for path in params.optional:
            if is_required(version.schema, path):
                yield Violation(
                    crd.manifest,
                    f"{where}: {path} is required; expected optional",
                    path=crd.schema_path(version.name, path),
                    # A pool creates its machines completely, and objects may omit an optional part.
                    harmless=context.bundle.is_pool_machine(crd)
                    or _is_in_optional_part(version, path),
                    when=params.optional_matters,
                )


def _is_in_optional_part(version: CrdVersion, path: str) -> bool:
    """Return whether a field is inside an object, below spec or status, that may be missing."""
    parent = path.rpartition(".")[0]
    return "." in parent and not is_required(version.schema, parent)


def _subresource(version: CrdVersion, params: Parts) -> Iterator[str]:
    name = params.subresource
    if not name:
        return
    if name not in version.subresources:
        yield f"{params.parts[0].path} is declared, but subresources has no {name}"
        return
    found = mapping_of(version.subresources, name)
    for key, value in params.subresource_values.items():
        if found.get(key) != value:
            yield f"subresources.{name}.{key} is {found.get(key)!r}; expected {value!r}"


def _typed(crd: Crd, version: CrdVersion, part: SchemaPart) -> Iterator[Violation]:
    schema = find_field(version.schema, part.path)
    where = f"{crd.kind} {version.name}: {part.path}"
    place = crd.schema_path(version.name, part.path)
    if schema is None:
        message = f"{where} is not declared; expected {part.type}"
        # Below a part that preserves unknown fields, core finds what the manager writes.
        if not is_open(version.schema, part.path):
            yield Violation(crd.manifest, message, path=place, when=part.matters)
        return
    found = describe(schema)
    if found != part.type:
        message = f"{where} is {found}; expected {part.type}"
        yield Violation(crd.manifest, message, path=place, when=part.matters)


@dataclass(frozen=True, slots=True)
class ConvertedValues:
    """Optional fields whose values core converts to a type without checking them first."""

    values: tuple[SchemaPart, ...]
    """Field paths with their types."""
    harmless_for: tuple[str, ...] = ()
    """Roles of kinds for which a violation is only advice."""


@check("schema-values", ConvertedValues)
def check_schema_values(context: Context, params: ConvertedValues) -> Iterator[Violation]:
    """ST-12: Each declared field has the type that core converts it to, and is never null."""
    for crd, version in context.versions():
        for part in params.values:
            schema = find_field(version.schema, part.path)
            if schema is None:
                continue
            found = describe(schema)
            if found == part.type and not schema.get("nullable"):
                continue
            actual = f"{found} or null" if schema.get("nullable") else found
            yield Violation(
                crd.manifest,
                f"{crd.kind} {version.name}: {part.path} is {actual}; expected {part.type}",
                path=crd.schema_path(version.name, part.path),
                harmless=crd.role in params.harmless_for,
            )


@dataclass(frozen=True, slots=True)
class External:
    """The field that marks control planes as externally managed, and the kinds for worker
    Machines."""

    path: str
    """Path to the boolean field."""
    machines: tuple[str, ...]
    """Field paths. If any of these fields is declared, the control plane has Machines."""
    roles: tuple[str, ...]
    """Roles of the kinds for worker Machines."""
    pool: str
    """Role of machine pools."""
    pool_machines: str
    """Path to a field that a pool's kind declares if the pool's machines are Machines."""
    workers_matter: str
    """Condition under which a missing field has the rule's effect: the workers may be others."""


@check("control-plane-external", External)
def check_control_plane_external(context: Context, params: External) -> Iterator[Violation]:
    """CP-25: A control plane without Machines can report that it is externally managed.

    The field is needed only if the release also has a kind for worker Machines.
    """
    for crd, version in context.versions():
        part = SchemaPart(params.path, "boolean")
        if find_field(version.schema, params.path) is not None:
            yield from _typed(crd, version, part)
            continue
        has_machines = any(find_field(version.schema, path) for path in params.machines)
        kind = _find_worker_kind(context, params)
        if kind and not has_machines and not is_open(version.schema, params.path):
            message = f"{params.path} is not declared, and {kind} is for worker Machines"
            yield Violation(
                crd.manifest,
                f"{crd.kind} {version.name}: {message}",
                path=crd.schema_path(version.name, params.path),
                when=params.workers_matter,
            )


def _find_worker_kind(context: Context, params: External) -> str:
    """Return a kind of the release for worker Machines, or an empty string."""
    for crd in context.bundle.crds:
        if crd.role in params.roles:
            return crd.kind
        if crd.role == params.pool and any(
            find_field(version.schema, params.pool_machines) for version in crd.used_versions
        ):
            return crd.kind
    return ""


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Fields of which a kind must declare at least one, for ``schema-one-of-paths``."""

    parts: tuple[SchemaPart, ...]
    """Field paths with their types."""
    when: str = ""
    """Field path. If set, nothing is checked unless this field is declared."""
    pools_matter: str = ""
    """Condition under which a violation has the rule's effect in a provider that has machine pools
    but no individual machines; empty if it always has.
    """


@check("schema-one-of-paths", Alternatives)
def check_schema_one_of_paths(context: Context, params: Alternatives) -> Iterator[Violation]:
    """CP-10: At least one listed field is declared, each with the type that core expects."""
    for crd, version in context.versions():
        if params.when and find_field(version.schema, params.when) is None:
            continue
        declared = [
            part for part in params.parts if find_field(version.schema, part.path) is not None
        ]
        if not declared and not any(is_open(version.schema, part.path) for part in params.parts):
            paths = " nor ".join(part.path for part in params.parts)
            yield Violation(
                crd.manifest,
                f"{crd.kind} {version.name}: neither {paths} is declared",
                path=crd.schema_path(version.name),
                when=params.pools_matter if context.bundle.has_pools_only else "",
            )
        for part in declared:
            yield from _typed(crd, version, part)


@dataclass(frozen=True, slots=True)
class MapList:
    """A list whose items are identified by keys, for the check ``schema-map-list``."""

    path: str
    """Path to the list. Nothing is checked unless the list is declared."""
    keys: tuple[str, ...]
    """Keys that identify an item, in order."""
    also: tuple[str, ...] = ()
    """Other paths at which the contract version allows such a list."""


@check("schema-map-list", MapList)
def check_schema_map_list(context: Context, params: MapList) -> Iterator[Violation]:
    """If the list is declared, its list type is ``map`` and it has the right keys."""
    for crd, version in context.versions():
        for path in (params.path, *params.also):
            schema = find_field(version.schema, path)
            complaint = "" if schema is None else _not_map_list(schema, params.keys)
            if complaint:
                yield Violation(
                    crd.manifest,
                    f"{crd.kind} {version.name}: {path} is {complaint}",
                    path=crd.schema_path(version.name, path),
                    # Core decodes a list of any list type if its items are objects.
                    harmless=_has_items_by(schema or {}, params.keys),
                )


def _not_map_list(schema: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    if describe(schema) != "list":
        return f"{describe(schema)}; expected list"
    if not _has_items_by(schema, keys):
        return f"a list of other items; expected objects with {', '.join(keys)} as strings"
    kind = schema.get("x-kubernetes-list-type")
    if (kind, list_of(schema, "x-kubernetes-list-map-keys")) == ("map", list(keys)):
        return ""
    return f"a list of type {kind or 'atomic'}; expected map by {', '.join(keys)}"


def _has_items_by(schema: Mapping[str, Any], keys: tuple[str, ...]) -> bool:
    """Return whether a schema is of a list of objects that hold each key as a string."""
    if describe(schema) != "list":
        return False
    items = mapping_of(schema, "items")
    fields = [find_field(items, key) or {"type": "undeclared"} for key in keys]
    is_declared = all(describe(field) == "string" for field in fields)
    return describe(items) == "object" and (is_declared or items.get(OPEN) is True)


@dataclass(frozen=True, slots=True)
class Absent:
    """Fields that a kind must not declare, for the check ``schema-absent``."""

    paths: tuple[str, ...]


@check("schema-absent", Absent)
def check_schema_absent(context: Context, params: Absent) -> Iterator[Violation]:
    """The kind declares no field that the contract removed or that core uses differently."""
    for crd, version in context.versions():
        for path in params.paths:
            if find_field(version.schema, path) is not None:
                yield Violation(
                    crd.manifest,
                    f"{crd.kind} {version.name}: {path} is declared; expected none",
                    path=crd.schema_path(version.name, path),
                )


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys that each item of a list must or may have."""

    path: str
    """Path to the list."""
    required: tuple[str, ...]
    """Keys that the schema must require in each item."""
    foreign: tuple[str, ...] = ()
    """Keys that identify items in the format of another contract version."""
    matters: str = ""
    """Condition under which a declared key that is not required has the rule's effect; empty if it
    always has."""


@check("schema-items", Keys)
def check_schema_items(context: Context, params: Keys) -> Iterator[Violation]:
    """The list's items have the keys that this contract version defines."""
    for crd, version in context.versions():
        schema = find_field(version.schema, params.path)
        if schema is None:
            continue
        where = f"{crd.kind} {version.name}: {params.path}"
        if describe(schema) != "list":
            yield Violation(
                crd.manifest,
                f"{where} is {describe(schema)}; expected list",
                path=crd.schema_path(version.name, params.path),
            )
            continue
        item = find_field(version.schema, f"{params.path}[]") or {}
        for complaint, when in _complain_of_items(item, params):
            yield Violation(
                crd.manifest,
                f"{where}: items {complaint}",
                path=crd.schema_path(version.name, f"{params.path}[]"),
                when=when,
            )


def _complain_of_items(item: Mapping[str, Any], params: Keys) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the schema of a list's items, and when that matters."""
    properties = mapping_of(item, "properties")
    missing = [key for key in params.required if key not in list_of(item, "required")]
    undeclared = [key for key in missing if key not in properties and item.get(OPEN) is not True]
    optional = [key for key in missing if key not in undeclared]
    if undeclared:
        yield f"do not declare {', '.join(undeclared)}", ""
    if optional:
        yield f"do not require {', '.join(optional)}", params.matters
    foreign = [key for key in params.foreign if key in properties]
    if foreign:
        yield f"have {', '.join(foreign)}, as in another contract", ""


@check("schema-list-types")
def check_schema_list_types(context: Context) -> Iterator[Violation]:
    """CRD-12: Every list declares how it is merged."""
    for crd, version in context.versions():
        unmarked = [
            path
            for path, schema in walk_schema(version.schema)
            if describe(schema) == "list" and "x-kubernetes-list-type" not in schema
        ]
        if unmarked:
            yield Violation(
                crd.manifest,
                f"{crd.kind} {version.name}: no x-kubernetes-list-type at {', '.join(unmarked)}",
                path=crd.schema_path(version.name, unmarked[0]),
            )


@dataclass(frozen=True, slots=True)
class Telltale:
    """Keys that identify a type of object when they occur together."""

    keys: tuple[str, ...]


@check("schema-no-shape", Telltale)
def check_schema_no_shape(context: Context, params: Telltale) -> Iterator[Violation]:
    """CRD-13: No reference contains a version or namespace."""
    for crd, version in context.versions():
        for path, schema in walk_schema(version.schema):
            if path and set(params.keys) <= set(mapping_of(schema, "properties")):
                yield Violation(
                    crd.manifest,
                    f"{crd.kind} {version.name}: {path} is a reference with "
                    f"{', '.join(params.keys)}; expected apiGroup, kind, name",
                    path=crd.schema_path(version.name, path),
                )
