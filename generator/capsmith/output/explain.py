"""Everything that capsmith derives from provider.yaml, for ``capsmith validate --explain``."""

from __future__ import annotations

from typing import Any

from capsmith.provider.fields import Field
from capsmith.provider.model import Component, Hook, Identity, Provider, Resource, Webhooks


def explain_resolution(provider: Provider) -> dict[str, Any]:
    """Return the resolved provider as plain data that YAML and JSON can represent."""
    return {
        "name": str(provider.name),
        "title": provider.title,
        "description": provider.description,
        "owner": provider.owner,
        "repository": str(provider.repository),
        "distribution": str(provider.distribution),
        "package": str(provider.package),
        "environmentPrefix": str(provider.environment_prefix),
        "image": str(provider.image),
        "licence": str(provider.licence),
        "contracts": [contract.version for contract in provider.contracts],
        "releases": {str(release.series): release.contract for release in provider.releases},
        "flavors": [str(flavor) for flavor in provider.flavors],
        "clusterClasses": [str(name) for name in provider.cluster_classes],
        "credentials": [_identity(each) for each in provider.identities],
        **({"sdk": str(provider.sdk)} if provider.sdk is not None else {}),
        **({"e2e": True} if provider.e2e else {}),
        "dependencies": list(provider.dependencies),
        "devDependencies": list(provider.dev_dependencies),
        "components": [_component(component) for component in provider.components],
    }


def _identity(identity: Identity) -> dict[str, Any]:
    found = {"kind": str(identity.kind), "keys": list(identity.keys), "secret": identity.secret}
    sources = [str(kind) for kind in identity.sources]
    return {**found, "sources": sources} if sources else found


def _component(component: Component) -> dict[str, Any]:
    return {
        "type": str(component.type),
        **_further_types(component),
        "label": str(component.label),
        "componentsFile": str(component.components_file),
        "namespace": str(component.namespace),
        "resources": [_resource(resource) for resource in component.resources],
        **({"hooks": [_hook(hook) for hook in component.hooks]} if component.hooks else {}),
    }


def _further_types(component: Component) -> dict[str, Any]:
    types = [str(type) for type in component.further_types]
    return {"furtherTypes": types} if types else {}


def _hook(hook: Hook) -> dict[str, Any]:
    return {
        "hook": str(hook.hook),
        "name": str(hook.name),
        "timeoutSeconds": hook.timeout_seconds,
        "failurePolicy": "Ignore" if hook.ignore_failures else "Fail",
    }


def _resource(resource: Resource) -> dict[str, Any]:
    shape = resource.storage_version.contract.types[resource.role]
    return {
        "kind": str(resource.kind),
        "role": str(resource.role),
        "crd": str(resource.crd_name),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "shortNames": [str(name) for name in resource.short_names],
        "categories": [str(name) for name in resource.categories],
        "module": str(resource.module),
        "features": sorted(resource.features),
        "versions": {
            str(version.name): {
                "contract": version.contract.version,
                "served": version.served,
                "storage": version.storage,
            }
            for version in resource.versions
        },
        "contractFields": {
            part: {
                name: field.rule
                for name, field in fields.items()
                if not field.feature or field.feature in resource.features
            }
            for part, fields in (("spec", shape.spec), ("status", shape.status))
        },
        "ownFields": _own_fields(resource),
        "printerColumns": [
            *(str(column["name"]) for column in shape.printer_columns),
            *(column.name for column in resource.printer_columns),
        ],
        **({"webhooks": _webhooks(resource.webhooks)} if resource.webhooks else {}),
        **_version_fields(resource),
    }


def _own_fields(resource: Resource) -> dict[str, Any]:
    parts = {"spec": resource.spec_fields, "status": resource.status_fields}
    if resource.instance_fields:
        parts["instanceStatus"] = resource.instance_fields
    return {part: _fields(fields) for part, fields in parts.items()}


def _version_fields(resource: Resource) -> dict[str, Any]:
    if not resource.version_fields:
        return {}
    return {
        "versionFields": {
            version: {"spec": _fields(own.spec_fields), "status": _fields(own.status_fields)}
            for version, own in resource.version_fields.items()
        }
    }


def _webhooks(webhooks: Webhooks) -> dict[str, Any]:
    return {
        "validation": webhooks.validation,
        "defaulting": webhooks.defaulting,
        "deletion": webhooks.deletion,
        "templates": webhooks.templates,
        "timeoutSeconds": webhooks.timeout_seconds,
    }


def _fields(fields: tuple[Field, ...]) -> dict[str, str]:
    return {
        field.name: f"{field.attribute}: {_type(field)}{', required' if field.required else ''}"
        for field in fields
    }


def _type(field: Field) -> str:
    if field.schema.get("x-kubernetes-int-or-string"):
        return "integer or string"
    return str(field.schema.get("type", "any"))
