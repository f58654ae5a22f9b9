"""Convert resources to CustomResourceDefinitions, as plain data.

The author's fields and the contract's fragments form one structural schema; which contract a
version follows is the version's own (:class:`ApiVersion`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from capsmith.cel_text import is_transition
from capsmith.contract.model import Contract, ContractField, TypeShape
from capsmith.provider.class_template import for_classes
from capsmith.provider.crd_labels import labels
from capsmith.provider.model import ApiVersion, Component, Resource, Role, Schema

_SCHEMA_MAPS = ("properties",)
_SCHEMAS = ("items", "additionalProperties")
_AGE = ".metadata.creationTimestamp"
_WANTED = "What is wanted."
CONVERT_PATH = "/convert"
"""The path of the conversion webhook."""
_STRING = {"type": "string"}


def custom_resource_definition(
    resource: Resource, component: Component, former: Sequence[Contract] = ()
) -> dict[str, Any]:
    """Return the CustomResourceDefinition of ``resource``; ``former`` are the past contracts.

    It carries the contract labels (GEN-01), the provider label (CC-26), and on identities and
    pools the label that makes clusterctl move them (MV-03, IP-11).  Where releases had versions of
    two contracts the manager converts (CRD-15), and cert-manager says whom to trust (CC-30).
    """
    metadata: dict[str, Any] = {"name": str(resource.crd_name)}
    if is_converted(resource, former):
        certificate = f"{component.namespace}/{component.namespace}-serving-cert"
        metadata["annotations"] = {"cert-manager.io/inject-ca-from": certificate}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {**metadata, "labels": labels(resource, component, former)},
        "spec": {
            "group": str(resource.group),
            "names": _names(resource),
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "conversion": _conversion(resource, component, former),
            "versions": [_version(resource, version) for version in resource.versions],
        },
    }


def is_converted(resource: Resource, former: Sequence[Contract]) -> bool:
    """Return whether objects must be converted between versions of the kind."""
    return len(resource.versions) > 1 and _names_webhook(resource, former)


def spec_schema(resource: Resource, version: ApiVersion) -> dict[str, Any]:
    """Return the schema of ``spec``: of a template, that of ``spec.template.spec``.

    A template repeats its object's fields, but requires none that only a controller can know
    (TP-08), and holds no transition rules: a ClusterClass dry-run could not pass them (IM-14),
    so an admission policy keeps templates unchanged instead.
    """
    shape = version.contract.types[_object_role(resource)]
    contract = _chosen(shape.spec, resource)
    if resource.role is Role.CONTROL_PLANE_TEMPLATE:
        contract = for_classes(contract)
    properties = {field.name: _listed(field.schema) for field in contract}
    properties |= {field.name: _listed(field.schema) for field in resource.spec_fields}
    required = [field.name for field in resource.spec_fields if field.required]
    if not resource.role.is_template:
        required += [field.name for field in contract if field.required]
    rules = [*_contract_validations(shape, resource), *map(dict, resource.spec_validations)]
    extra = {"x-kubernetes-validations": rules} if rules else {}
    schema = _object(properties, required, _WANTED, extra)
    return _without_transitions(schema) if resource.role.is_template else schema


def status_schema(resource: Resource, version: ApiVersion) -> dict[str, Any] | None:
    """Return the schema of ``status``, or None where the kind has none."""
    fields = _chosen(_shape(resource, version).status, resource)
    properties = {field.name: _listed(field.schema) for field in fields}
    properties |= {field.name: _listed(field.schema) for field in resource.status_fields}
    if not properties:
        return None
    required = [field.name for field in fields if field.required]
    return _object(properties, required, "Observed state; written by the manager.")


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
    """Return whether releases of the kind have followed two contracts, up to this one.

    Such a CRD names the webhook forever.  clusterctl merges CRDs, after it has read them into a
    type that has no nulls: it cannot take a webhook away, and the API server refuses one beside
    strategy None, and with it the whole release.  For the same reason the shapes do not matter,
    which an author may make alike or different with each release.  For the only version of a
    kind the webhook is never called.
    """
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
    schema = version_schema(resource, version)
    entry: dict[str, Any] = {
        "name": str(version.name),
        "served": version.served,
        "storage": version.storage,
        "additionalPrinterColumns": _columns(resource, _shape(resource, version), schema),
        "schema": {"openAPIV3Schema": schema},
    }
    subresources = _subresources(_shape(resource, version), schema)
    if subresources:
        entry["subresources"] = subresources
    return entry


def _subresources(shape: TypeShape, schema: Schema) -> dict[str, Any]:
    """Status where there is one, and scale where the fields are that it reads (CRD-06, CP-04)."""
    found: dict[str, Any] = {"status": {}} if "status" in schema["properties"] else {}
    scale = shape.subresources.get("scale")
    if scale and all(_is_there(path, schema) for path in scale.values()):
        found["scale"] = dict(scale)
    return found


def version_schema(resource: Resource, version: ApiVersion) -> dict[str, Any]:
    """Return the schema of whole objects in one version."""
    spec = spec_schema(resource, version)
    if resource.role.is_template:
        spec = _template(_shape(resource, version), spec)
    properties: dict[str, Any] = {
        "apiVersion": _STRING | {"description": "Version of the schema that this object is in."},
        "kind": _STRING | {"description": "Kind of this object."},
        "metadata": {"type": "object"},
        "spec": spec,
    }
    status = status_schema(resource, version)
    if status is not None:
        properties["status"] = status
    required = ["spec"] if spec.get("required") else []
    return _object(properties, required, resource.description)


def _template(shape: TypeShape, spec: Schema) -> dict[str, Any]:
    """Return ``spec.template.{metadata, spec}`` (CRD-08); core copies the whole of ``template``."""
    template = dict(shape.spec["template"].schema)
    inner = {**spec, "description": template["properties"]["spec"]["description"]}
    template["properties"] = {**template["properties"], "spec": inner}
    return _object({"template": template}, ["template"], _WANTED)


def _columns(resource: Resource, shape: TypeShape, schema: Schema) -> list[dict[str, Any]]:
    columns = [
        dict(column) for column in shape.printer_columns if _is_there(column["jsonPath"], schema)
    ]
    for own in resource.printer_columns:
        column: dict[str, Any] = {"name": own.name, "type": own.type, "jsonPath": own.json_path}
        if own.description:
            column["description"] = own.description
        if own.priority:
            column["priority"] = own.priority
        columns.append(column)
    # Age comes last in every table of kubectl.
    return sorted(columns, key=lambda column: column["jsonPath"] == _AGE)


def _is_there(path: str, schema: Schema) -> bool:
    """Return whether the field that a column shows is in: parts of the contract can be left out."""
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


def _contract_validations(shape: TypeShape, resource: Resource) -> list[dict[str, Any]]:
    """Return the contract's rules about the spec; a template lacks fields that they read."""
    if resource.role.is_template:
        return []
    return [
        {"rule": validation.rule, "message": validation.message}
        for validation in shape.validations
        if validation.features <= resource.features
    ]


def _object_role(resource: Resource) -> str:
    return resource.role.value.removesuffix("Template")


def _object(
    properties: Mapping[str, Any],
    required: Iterable[str],
    description: str,
    extra: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "description": description,
        "type": "object",
        "properties": dict(sorted(properties.items())),
    }
    names = sorted(set(required))
    if names:
        schema["required"] = names
    return {**schema, **(extra or {})}


def _listed(schema: Schema) -> dict[str, Any]:
    """Return ``schema`` with every list's type named (CRD-12): what is unnamed is atomic."""
    result = _mapped(schema, _listed)
    if result.get("type") == "array":
        result.setdefault("x-kubernetes-list-type", "atomic")
    return result


def _without_transitions(schema: Schema) -> dict[str, Any]:
    """Return ``schema`` without the validations that compare with the old object."""
    result = _mapped(schema, _without_transitions)
    rules = result.pop("x-kubernetes-validations", [])
    kept = [rule for rule in rules if not is_transition(str(rule["rule"]))]
    if kept:
        result["x-kubernetes-validations"] = kept
    return result


def _mapped(schema: Schema, change: Any) -> dict[str, Any]:
    """Return a copy of ``schema`` with ``change`` done to the schemas directly below it."""
    result = dict(schema)
    for key in _SCHEMA_MAPS:
        if key in result:
            result[key] = {name: change(value) for name, value in result[key].items()}
    for key in _SCHEMAS:
        if isinstance(result.get(key), Mapping):
            result[key] = change(result[key])
    return result
