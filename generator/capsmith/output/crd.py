"""Convert resources to CustomResourceDefinitions, as plain data.

The author's fields and the contract's fields form one structural schema.  Each API version follows
the contract version of its :class:`ApiVersion`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from capsmith.cel_text import remove_transition_rules
from capsmith.contract.model import Contract, ContractField, TypeShape
from capsmith.output.instances import add_instance_fields
from capsmith.provider.contract_fields import (
    INSTANCE_STATUS,
    RECORDED,
    apply_own_schemas,
    choose_schema,
    find_changed_fields,
)
from capsmith.provider.field_paths import move_fields, select_paths
from capsmith.provider.fields import Schema
from capsmith.provider.model import ApiVersion, Component, Resource, Role
from capsmith.provider.versions import select_version

_READ_INSIDE = re.compile(r"\bself\.(\w+)\.")  # fields of which a CEL rule reads a part
_SCHEMAS = ("items", "additionalProperties")


def build_object_schema(
    properties: Mapping[str, Any],
    required: Iterable[str],
    description: str,
    extra: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the schema for an object; ``extra`` holds additional keywords."""
    schema: dict[str, Any] = {
        "description": description,
        "type": "object",
        "properties": dict(sorted(properties.items())),
    }
    names = sorted(set(required))
    if names:
        schema["required"] = names
    return {**schema, **(extra or {})}


def set_list_types(schema: Schema) -> dict[str, Any]:
    """Return ``schema`` with the list type ``atomic`` for every list that has no type (CRD-12)."""
    result = _mapped(schema, set_list_types)
    if result.get("type") == "array":
        result.setdefault("x-kubernetes-list-type", "atomic")
    return result


def _mapped(schema: Schema, change: Any) -> dict[str, Any]:
    """Return a copy of ``schema`` with ``change`` applied to each direct subschema."""
    result = dict(schema)
    if "properties" in result:
        result["properties"] = {name: change(value) for name, value in result["properties"].items()}
    for key in _SCHEMAS:
        if isinstance(result.get(key), Mapping):
            result[key] = change(result[key])
    return result


_MOVE_LABELS = {
    **dict.fromkeys((Role.IDENTITY, Role.IP_POOL, Role.ADDON, Role.RESOURCE), "move-hierarchy"),
    # MachineHealthChecks, which move with their Cluster, do not own their templates.
    Role.REMEDIATION_TEMPLATE: "move",
    # Dependents of a cluster-scoped owner also stay at the source, which addresses must not.
    Role.GLOBAL_IP_POOL: "move",
}
"""Labels that make clusterctl move objects without owners, by role (MV-02, MV-03, IP-11)."""
_CLUSTER_SCOPED = {Role.RESOURCE: "move"}
"""Labels for cluster-scoped kinds, by role."""


def build_contract_labels(resource: Resource) -> dict[str, str]:
    """Return the contract labels. Each value joins served versions with ``_`` (GEN-01, GEN-02)."""
    labels: dict[str, list[str]] = {}
    for version in resource.versions:
        if version.served:
            labels.setdefault(str(version.contract.label), []).append(str(version.name))
    return {label: "_".join(names) for label, names in sorted(labels.items())}


def build_labels(
    resource: Resource, component: Component, former: Sequence[Contract]
) -> dict[str, str]:
    """Return all labels for a CRD (GEN-01, CC-26, MV-03).

    For each contract version in ``former``, which the provider no longer supports, the contract
    label is empty.
    """
    # When clusterctl merges a CRD, a label that is left out stays, and would list a version that
    # another label also lists, or that does not exist (GEN-06).  Core treats an empty label as a
    # missing one.
    found = {str(contract.label): "" for contract in former}
    # The current contracts come last, so that their labels replace the empty labels of the same
    # name.
    found |= {"cluster.x-k8s.io/provider": str(component.label), **build_contract_labels(resource)}
    move = _MOVE_LABELS | ({} if resource.namespaced else _CLUSTER_SCOPED)
    if resource.role in move:
        found[f"clusterctl.cluster.x-k8s.io/{move[resource.role]}"] = ""
    return found


_OF_TOPOLOGY = frozenset({"controlPlaneEndpoint", "replicas", "version"})
_BELOW = frozenset({"infrastructureRef", "after"})
"""Nested fields that core's topology controller sets: the machines' template, the rollout time."""


def make_optional(fields: Iterable[ContractField]) -> list[ContractField]:
    """Return the fields for a control plane's template; none of them is required (CP-28).

    Fields that core's topology controller sets are left out, even if they are nested.
    """
    return [
        field._replace(schema=_without_topology(field.schema), required=False)
        for field in fields
        if field.name not in _OF_TOPOLOGY
    ]


def _without_topology(schema: Schema) -> dict[str, Any]:
    """Return ``schema`` without the fields that core's topology controller sets, at any depth."""
    result = dict(schema)
    if "properties" in result:
        result["properties"] = {
            name: _without_topology(below)
            for name, below in result["properties"].items()
            if name not in _BELOW
        }
    if "required" in result:
        there = result.get("properties", {})
        # A part that was required only because of the reference need not be required.
        kept = [name for name in result["required"] if name in there and name != "spec"]
        result["required"] = kept
        if not kept:
            del result["required"]
    return result


_AGE = ".metadata.creationTimestamp"
_WANTED = "What is wanted."
CONVERT_PATH = "/convert"
"""URL path on which managers serve the conversion webhook."""
_STRING = {"type": "string"}


def build_crd(
    resource: Resource, component: Component, former: Sequence[Contract] = ()
) -> dict[str, Any]:
    """Return the CustomResourceDefinition for ``resource``.

    ``former`` lists the contract versions that the provider no longer supports.  The CRD has the
    contract labels (GEN-01), the provider label (CC-26) and, for kinds that clusterctl would
    otherwise not move, a label that makes clusterctl move them (MV-03, IP-11).  If releases have
    had versions with different schemas, the CRD refers to the manager's conversion webhook
    (CRD-15).  If such a CRD has several versions, it also has the annotation that makes
    cert-manager inject the CA certificate (CC-30).
    """
    metadata: dict[str, Any] = {"name": str(resource.crd_name)}
    # The API server calls the webhook only over TLS, and cert-manager's CA injector writes the CA
    # into the CRD.  Without the annotation, nothing would ever write it.
    if is_converted(resource, former):
        certificate = f"{component.namespace}/{component.namespace}-serving-cert"
        metadata["annotations"] = {"cert-manager.io/inject-ca-from": certificate}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {**metadata, "labels": build_labels(resource, component, former)},
        "spec": {
            "group": str(resource.group),
            "names": _names(resource),
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "conversion": _conversion(resource, component, former),
            "versions": [_version(resource, version) for version in resource.versions],
        },
    }


def is_converted(resource: Resource, former: Sequence[Contract]) -> bool:
    """Return whether the manager must convert the kind's objects between versions.

    ``former`` lists the contract versions that the provider no longer supports.
    """
    return len(resource.versions) > 1 and _names_webhook(resource, former)


def build_spec_schema(resource: Resource, version: ApiVersion) -> dict[str, Any]:
    """Return the schema for ``spec`` or, for a template, the schema for ``spec.template.spec``.

    A template has the same fields as its kind, with two exceptions.  Fields that only a controller
    can set are optional (TP-08).  Transition rules are left out unless the author keeps them,
    because a ClusterClass dry run could not satisfy them (IM-14); an admission policy keeps
    templates immutable instead.
    """
    resource = select_version(resource, version)
    shape = version.contract.types[_object_role(resource)]
    contract = _contract_spec(shape, resource)
    properties = {field.name: set_list_types(field.schema) for field in contract}
    own = resource.contract_fields
    if resource.role.is_template:
        written = own.spec if own is not None else {}
        properties |= {
            name: remove_transition_rules(schema)
            for name, schema in properties.items()
            if name not in written
        }
    # The author's fields come last, because a check has refused fields that redefine the
    # contract's.
    properties |= {field.name: set_list_types(field.schema) for field in resource.spec_fields}
    required = [field.name for field in resource.spec_fields if field.required]
    if not resource.role.is_template or (own is not None and own.has_own_spec):
        required += [field.name for field in contract if field.required]
    rules = [*_contract_validations(shape, resource), *map(dict, resource.spec_validations)]
    extra = {"x-kubernetes-validations": rules} if rules else {}
    # Limits are named by their place in the object, which is one level deeper in a template.
    part = "spec.template.spec" if resource.role.is_template else "spec"
    schema = build_object_schema(
        properties, required, _WANTED, {**extra, **resource.options.limits(part)}
    )
    is_free = resource.role.is_template and not resource.options.transition_rules
    return remove_transition_rules(schema) if is_free else schema


def _contract_spec(shape: TypeShape, resource: Resource) -> list[ContractField]:
    """Return the contract's fields in spec.

    A template omits the manager's records, which no two objects share; a control plane's template
    also omits what core's topology controller sets.
    """
    own, chosen = resource.contract_fields, _chosen_spec(shape, resource)
    if resource.role.is_template:
        chosen = [field for field in chosen if field.name != RECORDED]
    if resource.role is not Role.CONTROL_PLANE_TEMPLATE:
        return apply_own_schemas(chosen, "spec", own)
    if own is not None and own.has_own_spec:
        return apply_own_schemas(make_optional(chosen), "spec", own)
    return make_optional(apply_own_schemas(chosen, "spec", own))


def build_status_schema(resource: Resource, version: ApiVersion) -> dict[str, Any] | None:
    """Return the schema for ``status``, or None if the kind has no status, like most templates.

    Templates have ``status: {}`` in ``schemas/contracts/*/types``, except InfraMachineTemplate,
    whose status reports capacity.
    """
    resource = select_version(resource, version)
    chosen = _chosen(_shape(resource, version).status, resource)
    fields = apply_own_schemas(chosen, "status", resource.contract_fields)
    if INSTANCE_STATUS in resource.features:
        fields = [add_instance_fields(field, resource.instance_fields) for field in fields]
    properties = {field.name: set_list_types(field.schema) for field in fields}
    properties |= {field.name: set_list_types(field.schema) for field in resource.status_fields}
    # An empty status would enable the subresource, and every write to it would be pruned to
    # nothing.
    if not properties:
        return None
    required = [field.name for field in fields if field.required]
    limits = resource.options.limits("status")
    return build_object_schema(
        properties, required, "Observed state; written by the manager.", limits
    )


def _conversion(
    resource: Resource, component: Component, former: Sequence[Contract]
) -> dict[str, Any]:
    if not _names_webhook(resource, former):
        return {"strategy": "None"}
    service = {
        "name": f"{component.namespace}-webhook",
        "namespace": str(component.namespace),
        "path": CONVERT_PATH,
    }
    webhook = {"clientConfig": {"service": service}, "conversionReviewVersions": ["v1"]}
    return {"strategy": "Webhook", "webhook": webhook}


def _names_webhook(resource: Resource, former: Sequence[Contract]) -> bool:
    """Return whether releases of the kind so far have had versions of different shapes.

    ``former`` lists past contracts.  The shapes differ by the contract that they follow, or by the
    author's fields.  The CRD of such a kind must always refer to the webhook.  When clusterctl
    updates a CRD, it cannot remove a webhook, because it reads the CRD into a type without nulls
    and merges it; the API server then refuses a webhook together with strategy None, and with it
    the whole release.  For the same reason it does not matter whether the shapes still differ, as
    this may change with each release.  The webhook of a kind with a single version is never called.
    """
    if resource.version_fields is not None:
        return True
    contracts = [*(version.contract for version in resource.versions), *former]
    return len({contract.version for contract in contracts}) > 1


def _names(resource: Resource) -> dict[str, Any]:
    names: dict[str, Any] = {
        "kind": str(resource.kind),
        "listKind": str(resource.list_kind),
        "plural": str(resource.plural),
        "singular": str(resource.singular),
    }
    if resource.categories:
        names["categories"] = [str(category) for category in resource.categories]
    if resource.short_names:
        names["shortNames"] = [str(name) for name in resource.short_names]
    return names


def _version(resource: Resource, version: ApiVersion) -> dict[str, Any]:
    resource = select_version(resource, version)
    schema = build_version_schema(resource, version)
    entry: dict[str, Any] = {
        "name": str(version.name),
        "served": version.served,
        "storage": version.storage,
        "additionalPrinterColumns": _columns(resource, _shape(resource, version), schema),
        "schema": {"openAPIV3Schema": schema},
    }
    # The API server drops an empty list, and would always show a difference from the file.
    if not entry["additionalPrinterColumns"]:
        del entry["additionalPrinterColumns"]
    if version.deprecated:
        entry["deprecated"] = True
    if version.deprecation_warning:
        entry["deprecationWarning"] = version.deprecation_warning
    subresources = _subresources(resource, _shape(resource, version), schema)
    if subresources:
        entry["subresources"] = subresources
    return entry


def _subresources(resource: Resource, shape: TypeShape, schema: Schema) -> dict[str, Any]:
    """Return the subresources: status, and scale if its fields are there (CRD-06, CP-04)."""
    found: dict[str, Any] = {"status": {}} if "status" in schema["properties"] else {}
    own = resource.options.scale
    scale = own if own is None else own or shape.subresources.get("scale")
    if scale and all(_is_there(path, schema) for path in scale.values()):
        found["scale"] = dict(scale)
    return found


def build_version_schema(resource: Resource, version: ApiVersion) -> dict[str, Any]:
    """Return the schema for a whole object in one API version."""
    resource = select_version(resource, version)
    spec = build_spec_schema(resource, version)
    if resource.role.is_template:
        spec = _template(_shape(resource, version), spec, resource)
    properties: dict[str, Any] = {
        "apiVersion": _STRING | {"description": "Version of the schema that this object is in."},
        "kind": _STRING | {"description": "Kind of this object."},
        "metadata": _metadata(resource),
        "spec": spec,
    }
    status = build_status_schema(resource, version)
    if status is not None:
        properties["status"] = status
    required = ["spec"] if _is_required(resource, "spec", bool(spec.get("required"))) else []
    required += ["metadata"] if _is_required(resource, "metadata", False) else []
    rules = [dict(rule) for rule in resource.object_validations]
    extra = {"x-kubernetes-validations": rules} if rules else {}
    return build_object_schema(properties, required, resource.description, extra)


def _metadata(resource: Resource) -> dict[str, Any]:
    """Return the schema of ``metadata``, in which only limits for names may be declared."""
    if resource.name_schema is None:
        return {"type": "object"}
    return {"type": "object", "properties": {"name": dict(resource.name_schema)}}


def _template(shape: TypeShape, spec: Schema, resource: Resource) -> dict[str, Any]:
    """Return ``spec.template.{metadata, spec}`` (CRD-08); core copies the whole ``template``."""
    template = dict(shape.spec["template"].schema)
    properties = template["properties"]
    inner = {**spec, "description": properties["spec"]["description"]}
    metadata, own = properties["metadata"], resource.contract_fields
    if own is not None and own.metadata is not None:
        metadata = choose_schema(own.metadata, metadata)
    is_left_out = own is not None and "metadata" in own.without
    template["properties"] = {**({} if is_left_out else {"metadata": metadata}), "spec": inner}
    template |= resource.options.limits("spec.template")
    properties, required = _part_fields(resource, "spec.template")
    template["properties"] |= properties
    is_required = _is_required(resource, "spec.template.spec", True)
    template["required"] = [*(("spec",) if is_required else ()), *required]
    if not template["required"]:
        del template["required"]
    properties, required = _part_fields(resource, "spec")
    if _is_required(resource, "spec.template", True):
        required = ["template", *required]
    limits = resource.options.limits("spec")
    return build_object_schema({"template": template, **properties}, required, _WANTED, limits)


def _part_fields(resource: Resource, part: str) -> tuple[dict[str, Any], list[str]]:
    """Return the author's fields in a part of a template: schemas, and names of required fields."""
    fields = resource.options.part_fields.get(part, ())
    schemas = {field.name: set_list_types(field.schema) for field in fields}
    return schemas, [field.name for field in fields if field.required]


def _is_required(resource: Resource, part: str, otherwise: bool) -> bool:
    """Return whether objects without a part are refused, which by default is ``otherwise``."""
    parts = resource.options.required_parts
    return otherwise if parts is None else part in parts


def _columns(resource: Resource, shape: TypeShape, schema: Schema) -> list[dict[str, Any]]:
    columns = [
        dict(column)
        for column in shape.printer_columns
        if resource.options.contract_columns and _is_there(column["jsonPath"], schema)
    ]
    for own in resource.printer_columns:
        column: dict[str, Any] = {"name": own.name, "type": own.type, "jsonPath": own.json_path}
        if own.description:
            column["description"] = own.description
        if own.priority:
            column["priority"] = own.priority
        columns.append(column)
    # As in every kubectl table, Age comes last.
    return sorted(columns, key=lambda column: column["jsonPath"] == _AGE)


def _is_there(path: str, schema: Schema) -> bool:
    """Return whether the schema has a column's field; parts of the contract can be left out."""
    _, part, *rest = path.replace("[", ".").split(".")
    if part not in ("spec", "status"):
        return True
    return rest[0] in schema["properties"].get(part, {}).get("properties", {})


def _shape(resource: Resource, version: ApiVersion) -> TypeShape:
    return version.contract.types[resource.role.value]


def _chosen(fields: Mapping[str, ContractField], resource: Resource) -> list[ContractField]:
    return [
        field
        for field in fields.values()
        if not field.feature or field.feature in resource.features
    ]


def select_contract_fields(resource: Resource, part: str) -> list[ContractField]:
    """Return the contract fields in ``part`` (``spec`` or ``status``) that the kind has.

    The fields depend on the kind's features and on its storage version's contract.  They have the
    contract's schemas, not the author's, and the paths that the CRD has.
    """
    shape = _shape(resource, resource.storage_version)
    return _chosen_spec(shape, resource) if part == "spec" else _chosen(shape.status, resource)


def _chosen_spec(shape: TypeShape, resource: Resource) -> list[ContractField]:
    """Return the contract's fields in spec that the kind has, at their paths in the CRD."""
    chosen, own = _chosen(shape.spec, resource), resource.contract_fields
    return chosen if own is None else move_fields(chosen, own.paths)


FieldPaths = tuple[tuple[str, str], ...]
"""Pairs of a field's path in the contract and its path in a CRD."""


def list_field_paths(resource: Resource, version: ApiVersion | None = None) -> FieldPaths:
    """Return the contract fields that a CRD version has elsewhere; by default, the storage version.

    Empty unless the author has declared other paths for fields that the kind has.
    """
    version = version or resource.storage_version
    own = select_version(resource, version).contract_fields
    if own is None or resource.role.is_template:
        return ()
    return tuple(select_paths(_chosen(_shape(resource, version).spec, resource), own.paths).items())


def _contract_validations(shape: TypeShape, resource: Resource) -> list[dict[str, Any]]:
    """Return the contract's rules for the spec, except rules that read fields a template lacks.

    Rules that read parts of a field which the author has left out or declared are left out, too.
    """
    if resource.role.is_template:
        return []
    changed = find_changed_fields(resource.contract_fields)
    return [
        {"rule": validation.rule, "message": validation.message}
        for validation in shape.validations
        if validation.features <= resource.features
        and changed.isdisjoint(_READ_INSIDE.findall(validation.rule))
    ]


def _object_role(resource: Resource) -> str:
    return resource.role.value.removesuffix("Template")
