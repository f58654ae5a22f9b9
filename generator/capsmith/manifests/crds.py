"""CustomResourceDefinitions as seen by checks: names, versions, roles, schemas, wrong types."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from capsmith.manifests.null_keywords import drop_nulls_of_crd
from capsmith.manifests.parse import Manifest, is_mapping, list_of, mapping_of, text_of
from capsmith.yamldoc.compose import Path

Schema = Mapping[str, Any]
OPEN = "x-kubernetes-preserve-unknown-fields"
"""Schema keyword that makes the API server keep undeclared fields instead of pruning them."""
INT_OR_STRING = "x-kubernetes-int-or-string"
"""Schema keyword that accepts both integers and strings."""
EMBEDDED = "x-kubernetes-embedded-resource"
"""Schema keyword that makes the API server treat a field as a whole object."""


def find_field(schema: Schema, path: str) -> Schema | None:
    """Return the schema for the field at a dotted path, or None if the field is not declared.

    In the path, ``[]`` after a name means the list's items, and ``{}`` the map's values.
    """
    current: Any = schema
    for part in path.split("."):
        name = part.rstrip("[]{}")
        current = mapping_of(current, "properties").get(name)
        if part.endswith("[]"):
            current = mapping_of(current, "items")
        elif part.endswith("{}"):
            current = mapping_of(current, "additionalProperties")
        if not isinstance(current, Mapping) or not current:
            return None
    return current if isinstance(current, Mapping) else None


def is_open(schema: Schema, path: str) -> bool:
    """Return whether an undeclared field is kept because a parent preserves unknown fields."""
    current: Any = schema
    for part in path.split("."):
        # Checked on the way down: below such a part nothing is pruned, whatever it declares.
        if mapping_of(current).get(OPEN) is True:
            return True
        current = mapping_of(current, "properties").get(part.rstrip("[]{}"))
    return False


def is_required(schema: Schema, path: str) -> bool:
    """Return whether the schema requires the last field of ``path`` in its parent."""
    parent, _, name = path.rpartition(".")
    holder = find_field(schema, parent) if parent else schema
    return holder is not None and name in list_of(holder, "required")


def describe(schema: Schema) -> str:
    """Return a schema's type as shown in messages, such as ``integer``, ``map`` or ``list``."""
    if schema.get(INT_OR_STRING):
        return "integer or string"
    kind = schema.get("type", "without a type")
    if kind == "object" and "additionalProperties" in schema:
        return "map"
    return "list" if kind == "array" else str(kind)


_ANY = frozenset({"array", "boolean", "integer", "number", "object", "string"})


def read_types(schema: Schema) -> frozenset[str]:
    """Return the JSON types of values that a schema accepts.

    ``number`` implies ``integer``.  A schema without a type accepts all types.
    """
    if schema.get(INT_OR_STRING) is True:
        return frozenset({"integer", "string"})
    kind = schema.get("type")
    if kind == "number":
        return frozenset({"integer", "number"})
    return frozenset({str(kind)}) if kind else _ANY


def walk_schema(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """Yield a schema and all schemas nested in it, each with its path."""
    yield path, schema
    for name, part in mapping_of(schema, "properties").items():
        if is_mapping(part):
            yield from walk_schema(part, f"{path}.{name}" if path else str(name))
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        part = schema.get(key)
        if is_mapping(part):
            yield from walk_schema(part, path + mark)


_TEMPLATE = "Template"
_CORE_GROUPS = frozenset(
    f"{part}cluster.x-k8s.io" for part in ("", "addons.", "clusterctl.", "runtime.")
)
"""API groups whose kinds do not belong to a provider."""
_CORE_KINDS = frozenset(("ipam.cluster.x-k8s.io", kind) for kind in ("IPAddress", "IPAddressClaim"))
_ENDINGS = {
    "MachinePool": "InfraMachinePool",
    "ControlPlane": "ControlPlane",
    "Cluster": "InfraCluster",
    "Machine": "InfraMachine",
    "Config": "BootstrapConfig",
    "Remediation": "Remediation",
    "IPPool": "IPPool",
    "Pool": "IPPool",
}
"""Suffixes of kinds, with the roles that they indicate; the first match applies."""
_BY_PREFIX = {
    "infrastructure": frozenset(
        {"MachinePool", "ControlPlane", "Cluster", "Machine", "IPPool", "Remediation"}
    ),
    "controlplane": frozenset({"ControlPlane"}),
    "bootstrap": frozenset({"Config"}),
    "ipam": frozenset({"IPPool", "Pool"}),
}
"""Suffixes that indicate a role in API groups with this prefix, even without a template."""
_PAIRED = frozenset({"MachinePool", "ControlPlane", "Cluster", "Machine", "Config", "Remediation"})
"""Suffixes that indicate a role in any other group if both kind and template exist."""
_WITHOUT_TEMPLATE = "IPPool"
_INFRASTRUCTURE = "infrastructure"
_BY_FIELD = (
    ("InfraMachinePool", "spec.providerIDList"),
    ("InfraMachinePoolTemplate", "spec.template.spec.providerIDList"),
)
"""Fields of infrastructure that only kinds of one role have, such as a pool called WorkerGroup."""


def guess_role(group: str, kind: str, scope: str, kinds: Set[tuple[str, str]]) -> str:
    """Guess a kind's role from its name. Return an empty string if it has none.

    ``kinds`` holds (group, kind) for each of the provider's CRDs.
    """
    if group in _CORE_GROUPS or (group, kind) in _CORE_KINDS:
        return ""
    if kind.endswith("Identity"):
        return "Identity"
    # A template has its kind's role plus a suffix, so both are guessed from the same name.
    plain = kind.removesuffix(_TEMPLATE)
    # In a Cluster API group the kind is sufficient; in other groups, any kind may end with Machine.
    allowed = _BY_PREFIX.get(group.partition(".")[0])
    if allowed is None:
        paired = {(group, plain), (group, plain + _TEMPLATE)} <= kinds
        allowed = _PAIRED if paired else frozenset()
    # The order of the suffixes matters, because MachinePool also ends with Pool.
    ending = next((ending for ending in _ENDINGS if plain.endswith(ending)), "")
    if ending not in allowed:
        return ""
    role = _ENDINGS[ending]
    if role != _WITHOUT_TEMPLATE:
        return role + kind.removeprefix(plain)
    if plain != kind:
        return ""
    return f"Global{role}" if scope == "Cluster" else role


_KEPT_CRDS = 4096
_STEPS = {"[]": "items", "{}": "additionalProperties"}
_MARKS = re.compile(r"\[\]|\{\}")


@dataclass(frozen=True, slots=True)
class CrdVersion:
    """An API version declared by a CRD."""

    name: str
    served: bool
    storage: bool
    schema: Mapping[str, Any]
    """The version's ``openAPIV3Schema``."""
    subresources: Mapping[str, Any]
    columns: tuple[str, ...]
    """Names of the printer columns."""
    selectable: tuple[str, ...] = ()
    """JSON paths of the fields by which clients can select objects."""


@dataclass(frozen=True, slots=True, eq=False)
class Crd:
    """A CRD and its kind's role in Cluster API; the role is empty if the kind has none."""

    manifest: Manifest
    role: str
    versions: tuple[CrdVersion, ...]
    judged: str | None = None
    """API version that core uses: empty for none; None if it may be any in the labels."""
    merged: Mapping[str, Any] | None = None
    """Labels of all copies of the CRD, which clusterctl merges; None if there is no other copy."""

    kind: str = field(init=False)
    """``spec.names.kind``; empty if missing."""
    group: str = field(init=False)
    """``spec.group``; empty if missing."""
    plural: str = field(init=False)
    """``spec.names.plural``; empty if missing."""
    scope: str = field(init=False)
    """``spec.scope``; empty if missing."""

    def __post_init__(self) -> None:
        # Read once: checks look for CRDs by these hundreds of times.
        spec = self.manifest.mapping("spec")
        object.__setattr__(self, "kind", text_of(spec, "names", "kind"))
        object.__setattr__(self, "group", text_of(spec, "group"))
        object.__setattr__(self, "plural", text_of(spec, "names", "plural"))
        object.__setattr__(self, "scope", text_of(spec, "scope"))

    @property
    def labels(self) -> Mapping[str, Any]:
        """Return the labels of the installed CRD, without keys that are not strings."""
        labels = self.manifest.mapping("metadata", "labels") if self.merged is None else self.merged
        return {key: value for key, value in labels.items() if isinstance(key, str)}

    @property
    def annotations(self) -> Mapping[str, Any]:
        """Return ``metadata.annotations``."""
        return self.manifest.mapping("metadata", "annotations")

    @property
    def used_versions(self) -> tuple[CrdVersion, ...]:
        """Return the version that core uses, or all versions if ``judged`` is None."""
        if self.judged is None:
            return self.versions
        return tuple(version for version in self.versions if version.name == self.judged)

    def schema_path(self, version: str, field: str = "") -> Path:
        """Return the path in the manifest to a version's schema, or to a field in that schema.

        ``field`` is dotted; ``[]`` means a list's items, and ``{}`` a map's values.  The result is
        empty if the CRD has no such version.
        """
        names = [each.name for each in self.versions]
        if version not in names:
            return ()
        path: Path = ("spec", "versions", names.index(version), "schema", "openAPIV3Schema")
        for part in field.split(".") if field else ():
            path += ("properties", part.rstrip("[]{}"))
            path += tuple(_STEPS[mark] for mark in _MARKS.findall(part))
        return path

    def labelled(self, label: str) -> tuple[str, ...]:
        """Return the versions that a contract label lists, separated by ``_`` (GEN-01)."""
        value = self.labels.get(label)
        return tuple(part for part in value.split("_") if part) if isinstance(value, str) else ()

    def versions_of(self, label: str) -> tuple[CrdVersion, ...]:
        """Return the CRD's versions that a contract label lists.

        For a CRD without any contract label, return the storage version, so that problems in its
        schema are still reported.  If :attr:`judged` is set, return the version that core uses.
        """
        if self.judged is not None:
            return self.used_versions
        names = self.labelled(label)
        if names:
            return tuple(version for version in self.versions if version.name in names)
        # A label of another contract means that this one is deliberately not supported.
        if any(key.startswith("cluster.x-k8s.io/v1") for key in self.labels):
            return ()
        return tuple(version for version in self.versions if version.storage)


def read_crds(manifests: tuple[Manifest, ...]) -> tuple[Crd, ...]:
    """Return the CRDs among ``manifests``.

    Roles are guessed from the kinds, or from a field that only one role has.  clusterctl installs
    copies of a CRD one after another, each as a merge patch, so the last value of each label counts
    for all of them.
    """
    found = [_drop_nulls(m) for m in manifests if m.kind == "CustomResourceDefinition"]
    kinds = {
        (text_of(m.document, "spec", "group"), text_of(m.document, "spec", "names", "kind"))
        for m in found
    }
    merged: dict[str, dict[str, Any]] = {}
    for m in found:
        merged.setdefault(m.name, {}).update(m.mapping("metadata", "labels"))
    copies = Counter(m.name for m in found)
    return tuple(
        Crd(
            manifest=m,
            role=_guess(m, kinds),
            versions=_read_versions(m),
            merged=merged[m.name] if copies[m.name] > 1 else None,
        )
        for m in found
    )


# The CRDs of several providers are read together, and those of each by themselves.
_drop_nulls = lru_cache(_KEPT_CRDS)(drop_nulls_of_crd)


@lru_cache(_KEPT_CRDS)
def _read_versions(crd: Manifest) -> tuple[CrdVersion, ...]:
    return tuple(_versions(crd.document))


def _guess(manifest: Manifest, kinds: set[tuple[str, str]]) -> str:
    group, scope = (text_of(manifest.document, "spec", key) for key in ("group", "scope"))
    role = guess_role(group, text_of(manifest.document, "spec", "names", "kind"), scope, kinds)
    if role or group.partition(".")[0] != _INFRASTRUCTURE:
        return role
    schemas = [version.schema for version in _read_versions(manifest)]
    return next((role for role, path in _BY_FIELD if any(find_field(s, path) for s in schemas)), "")


def _versions(document: Mapping[str, Any]) -> Iterator[CrdVersion]:
    # Until v1beta1 of the CRD API, all versions may share the schema and the subresources.
    shared = {} if text_of(document, "apiVersion").endswith("/v1") else mapping_of(document, "spec")
    for version in list_of(document, "spec", "versions"):
        schema = mapping_of(version, "schema", "openAPIV3Schema")
        yield CrdVersion(
            name=text_of(version, "name"),
            served=mapping_of(version).get("served") is True,
            storage=mapping_of(version).get("storage") is True,
            schema=schema or mapping_of(shared, "validation", "openAPIV3Schema"),
            subresources=_read_subresources(version) or _read_subresources(shared),
            columns=tuple(
                text_of(column, "name") for column in list_of(version, "additionalPrinterColumns")
            ),
            selectable=tuple(
                text_of(field, "jsonPath") for field in list_of(version, "selectableFields")
            ),
        )


def _read_subresources(holder: Any) -> dict[str, Any]:
    """Return the subresources; for the API server, null is the same as a missing one."""
    found = mapping_of(holder, "subresources")
    return {name: each for name, each in found.items() if each is not None}


Problem = tuple[Path, str]
"""A tuple of the path to a part of the CRD that has the wrong type, and the expected type."""
_Check = Callable[[Any, Path], Iterable[Problem]]
_EXACT: dict[_Check, tuple[type, ...]] = {}
"""Types of which each value passes a check of scalars.  Nearly all values have one of them."""


def find_wrong_types(crd: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the parts of a CRD that the API server cannot decode because their types are wrong.

    If there are none, callers can rely on the types.  As in the API server, null counts as absent.
    Unknown keys are ignored.
    """
    yield from _CRD(crd, ())


def _scalar(what: str, *types: type) -> _Check:
    def check(value: Any, path: Path) -> Iterable[Problem]:
        # In Python True is an int.
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            return ((path, what),)
        return ()

    _EXACT[check] = types
    return check


def _list_of(item: _Check) -> _Check:
    def check(value: Any, path: Path) -> Iterator[Problem]:
        if not isinstance(value, list):
            yield path, "a list"
            return
        for index, each in enumerate(value):
            yield from item(each, (*path, index))

    return check


def _map_of(value_check: _Check) -> _Check:
    def check(value: Any, path: Path) -> Iterator[Problem]:
        if not is_mapping(value):
            yield path, "a mapping"
            return
        for key, each in value.items():
            if isinstance(key, str):
                yield from () if each is None else value_check(each, (*path, key))
            else:
                yield path, f"a string instead of the key {key!r}"

    return check


def _object(**keys: _Check) -> _Check:
    checks = {key.replace("__", "-"): check for key, check in keys.items()}
    exact = {key: _EXACT[check] for key, check in checks.items() if check in _EXACT}

    def check(value: Any, path: Path) -> Iterator[Problem]:
        if not is_mapping(value):
            yield path, "a mapping"
            return
        for key, found in value.items():
            if type(found) in exact.get(key, ()):
                continue
            if not isinstance(key, str):
                yield path, f"a string instead of the key {key!r}"
            elif found is not None and (check_key := checks.get(key)) is not None:
                yield from check_key(found, (*path, key))

    return check


def _anything(value: Any, path: Path) -> Iterable[Problem]:
    return ()


def _schema(value: Any, path: Path) -> Iterable[Problem]:
    # A separate function, because schemas contain schemas.
    return _SCHEMA(value, path)


def _schema_or_flag(value: Any, path: Path) -> Iterable[Problem]:
    return () if isinstance(value, bool) else _SCHEMA(value, path)


_TEXT = _scalar("a string", str)
_FLAG = _scalar("true or false", bool)
_COUNT = _scalar("an integer", int)
_NUMBER = _scalar("a number", int, float)
_RULE = _object(
    **dict.fromkeys(("rule", "message", "messageExpression", "reason", "fieldPath"), _TEXT),
    optionalOldSelf=_FLAG,
)
_SCHEMA = _object(
    **dict.fromkeys(("type", "format", "pattern", "title", "description"), _TEXT),
    **dict.fromkeys(("maximum", "minimum", "multipleOf"), _NUMBER),
    **dict.fromkeys(("maxLength", "minLength", "maxItems", "minItems"), _COUNT),
    **dict.fromkeys(("maxProperties", "minProperties"), _COUNT),
    **dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum", "uniqueItems", "nullable"), _FLAG),
    **dict.fromkeys(("allOf", "oneOf", "anyOf"), _list_of(_schema)),
    enum=_list_of(_anything),
    required=_list_of(_TEXT),
    properties=_map_of(_schema),
    additionalProperties=_schema_or_flag,
    items=_schema,
    x__kubernetes__preserve__unknown__fields=_FLAG,
    x__kubernetes__int__or__string=_FLAG,
    x__kubernetes__embedded__resource=_FLAG,
    x__kubernetes__list__type=_TEXT,
    x__kubernetes__map__type=_TEXT,
    x__kubernetes__list__map__keys=_list_of(_TEXT),
    x__kubernetes__validations=_list_of(_RULE),
    **{"not": _schema},
)
_COLUMN = _object(
    **dict.fromkeys(("name", "type", "format", "description", "jsonPath"), _TEXT),
    priority=_COUNT,
)
_SCALE = dict.fromkeys(("specReplicasPath", "statusReplicasPath", "labelSelectorPath"), _TEXT)
_VERSION = _object(
    name=_TEXT,
    **dict.fromkeys(("served", "storage", "deprecated"), _FLAG),
    deprecationWarning=_TEXT,
    schema=_object(openAPIV3Schema=_schema),
    subresources=_object(status=_map_of(_anything), scale=_object(**_SCALE)),
    additionalPrinterColumns=_list_of(_COLUMN),
    selectableFields=_list_of(_object(jsonPath=_TEXT)),
)
_NAMES = _object(
    **dict.fromkeys(("plural", "singular", "kind", "listKind"), _TEXT),
    **dict.fromkeys(("shortNames", "categories"), _list_of(_TEXT)),
)
_SERVICE = _object(**dict.fromkeys(("namespace", "name", "path"), _TEXT), port=_COUNT)
_WEBHOOK = _object(
    clientConfig=_object(url=_TEXT, caBundle=_TEXT, service=_SERVICE),
    conversionReviewVersions=_list_of(_TEXT),
)
_CRD = _object(
    metadata=_object(name=_TEXT, labels=_map_of(_TEXT), annotations=_map_of(_TEXT)),
    spec=_object(
        group=_TEXT,
        scope=_TEXT,
        names=_NAMES,
        versions=_list_of(_VERSION),
        preserveUnknownFields=_FLAG,
        conversion=_object(strategy=_TEXT, webhook=_WEBHOOK),
    ),
)
