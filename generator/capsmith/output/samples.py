"""Example specs of a provider's kinds, for samples, templates and ClusterClasses."""

from __future__ import annotations

from typing import Any, Final

from capsmith.output.crd import build_spec_schema
from capsmith.output.example import build_example, build_example_fields, fit_example
from capsmith.output.identities import CREDENTIALS, IDENTITY_REF
from capsmith.output.machine_reference import place_machine_reference
from capsmith.provider.model import SECRET_REF, SOURCE_REF, Provider, Resource, Role
from capsmith.safetext import SafeText

_FOREIGN = ("infrastructure.cluster.x-k8s.io/v1beta1", "ExampleMachineTemplate", "example")


def build_example_control_plane(resource: Resource, provider: Provider) -> dict[str, Any]:
    """Return an example version and infrastructure template for a control plane's Machines.

    Empty for other roles.  The template's kind is from this repository if possible (CP-12, CP-13).
    """
    if resource.role is not Role.CONTROL_PLANE:
        return {}
    fields: dict[str, Any] = {"version": str(provider.kubernetes)} if has_version(resource) else {}
    if "machines" not in resource.features:
        return fields
    version, kind, name = _template(provider)
    reference = {
        "apiGroup": version.partition("/")[0],
        **{"apiVersion": version, "kind": kind, "name": name, "namespace": "default"},
    }
    return {**fields, **place_machine_reference(resource, reference)}


def has_version(resource: Resource) -> bool:
    """Return whether a control plane's CRD has ``spec.version``; status may have one without it."""
    return "version" in build_spec_schema(resource, resource.storage_version)["properties"]


def _template(provider: Provider) -> tuple[str, str, str]:
    for found in provider.resources:
        if found.role is Role.INFRA_MACHINE_TEMPLATE:
            version = f"{found.group}/{found.storage_version.name}"
            return version, str(found.kind), str(found.singular)
    return _FOREIGN


def sample_spec(resource: Resource, provider: Provider) -> dict[str, Any]:
    """Return a minimal ``spec``: required fields with example values, and the identity.

    Optional fields are added if the schema sets ``minProperties``.
    """
    if resource.role is Role.IDENTITY:
        parts: dict[str, Any] = {
            SECRET_REF: {"name": name_credentials(resource, provider)},
            "allowedNamespaces": _admitted_namespaces(provider),
        }
        contract = {name: value for name, value in parts.items() if name in resource.features}
        reference = _source_reference(resource, provider)
    else:
        contract = {
            **_example_fields(resource),
            **build_example_control_plane(resource, provider),
        }
        reference = _sample_reference(resource, provider)
    least = count_least_fields(resource, provider) - len(contract) - len(reference)
    spec = {**contract, **build_example_fields(resource.spec_fields, least), **reference}
    if resource.contract_fields is None:
        return spec
    # The author has changed the schemas of contract fields, so their examples may not be valid.
    schema = build_spec_schema(resource, resource.storage_version)
    return dict(fit_example(schema, spec))


def count_least_fields(resource: Resource, provider: Provider) -> int:
    """Return how many fields the spec of a kind must have, also as a part of its template."""
    template = f"{resource.kind}Template"
    limits = [resource.options.limits("spec.template.spec")]
    if not resource.role.is_template:
        limits = [resource.options.limits("spec")]
        limits += [
            each.options.limits("spec.template.spec")
            for each in provider.resources
            if each.kind == template
        ]
    return max(int(each.get("minProperties", 0)) for each in limits)


def _source_reference(resource: Resource, provider: Provider) -> dict[str, Any]:
    """Return the reference to an identity of another kind; empty if the kind has no such source."""
    sources = provider.identity(resource.kind).sources
    kind = next((each for each in sources if each != resource.kind), None)
    if kind is None:
        return {}
    return {SOURCE_REF: {"kind": str(kind), "name": str(provider.name)}}


def _admitted_namespaces(provider: Provider) -> dict[str, Any]:
    """Return the allowed namespaces: all only if a cluster-scoped kind uses identities."""
    users = (each for each in provider.resources if build_identity_reference(each, provider))
    # As few namespaces as the samples need get access to credentials.
    return {"list": ["default"]} if all(each.namespaced for each in users) else {}


def _example_fields(resource: Resource) -> dict[str, Any]:
    """Return the fields that a pool needs for allocation, or an add-on to select clusters."""
    if resource.role not in (Role.IP_POOL, Role.GLOBAL_IP_POOL, Role.ADDON):
        return {}
    fields = resource.storage_version.contract.types[resource.role.value].spec.values()
    return {
        field.name: build_example(field.schema)
        for field in fields
        if "example" in field.schema and (not field.feature or field.feature in resource.features)
    }


def name_credentials(resource: Resource, provider: Provider) -> SafeText:
    """Return the name of the sample Secret that holds an identity kind's credentials."""
    is_first = provider.credentials is None or provider.credentials.kind == resource.kind
    return SafeText(f"{provider.name if is_first else resource.singular}-credentials")


_WITH_DEFAULT: Final = ("InfraMachine", "InfraMachinePool", "ControlPlane")


def build_identity_reference(resource: Resource, provider: Provider) -> dict[str, Any]:
    """Return the reference to the first kind of identity, unless the kind can do without one.

    Machines and control planes use the identity of their cluster's infrastructure by default.
    """
    role = resource.role.value.removesuffix("Template")
    has_default = role in _WITH_DEFAULT and any(
        each.role is Role.INFRA_CLUSTER and CREDENTIALS in each.features
        for each in provider.resources
    )
    if provider.credentials is None or CREDENTIALS not in resource.features or has_default:
        return {}
    reference = {"kind": str(provider.credentials.kind), "name": str(provider.name)}
    return {IDENTITY_REF: reference}


def _sample_reference(resource: Resource, provider: Provider) -> dict[str, Any]:
    """Return the reference to the identity that a sample names.

    That of a machine pool with an identity of its own names another kind than its cluster's.
    """
    is_pool = resource.role is Role.INFRA_MACHINE_POOL and CREDENTIALS in resource.features
    if not is_pool or len(provider.identities) == 1:
        return build_identity_reference(resource, provider)
    return {IDENTITY_REF: {"kind": str(provider.identities[1].kind), "name": str(provider.name)}}
