"""Find the kinds that need admission webhooks, conversion webhooks, or storage migration."""

from __future__ import annotations

from typing import Any, NamedTuple

from capsmith.contract.model import ChangeKind, FieldChange, FieldConversion, Where
from capsmith.output.crd import FieldPaths, build_version_schema, is_converted, list_field_paths
from capsmith.provider.field_paths import add_property
from capsmith.provider.fields import Schema
from capsmith.provider.model import ApiVersion, Component, Provider, Resource, Webhooks
from capsmith.provider.versions import rank_api_version
from capsmith.safetext import DnsSubdomain, VersionName


class AdmittedKind(NamedTuple):
    """A kind that has admission webhooks."""

    resource: Resource
    template: Resource | None
    """The kind's template resource if the webhooks receive its objects as well; otherwise None."""
    webhooks: Webhooks

    @property
    def name(self) -> DnsSubdomain:
        """Return ``<singular>.<group>``, the suffix of webhook names."""
        return DnsSubdomain(f"{self.resource.singular}.{self.resource.group}")

    @property
    def versions(self) -> tuple[VersionName, ...]:
        """Return the versions in which the API server sends objects to the webhooks.

        The author's code handles only the storage version's fields, so the API server first
        converts objects in other versions (``matchPolicy: Equivalent``).
        """
        others = self.resource.version_fields or {}
        return tuple(
            version.name
            for version in self.resource.versions
            if version.served and version.name not in others
        )

    @property
    def admitted(self) -> tuple[Resource, ...]:
        """Return the resources whose objects the webhooks receive."""
        return (self.resource,) if self.template is None else (self.resource, self.template)


def list_admitted_kinds(component: Component) -> tuple[AdmittedKind, ...]:
    """Return a component's kinds that have admission webhooks."""
    templates = {str(each.kind): each for each in component.resources if each.role.is_template}
    return tuple(
        AdmittedKind(
            resource,
            templates.get(f"{resource.kind}Template") if resource.webhooks.templates else None,
            resource.webhooks,
        )
        for resource in component.resources
        if resource.webhooks is not None
    )


def has_admission(provider: Provider) -> bool:
    """Return whether any of the provider's kinds has admission webhooks."""
    return any(list_admitted_kinds(component) for component in provider.components)


Path = tuple[str, ...]


class ShapeChange(NamedTuple):
    """A field that the conversion webhook converts between two versions of a kind (CRD-15)."""

    old: Path
    """Path from the object's root; empty if the older version has no such field."""
    new: Path
    conversion: str
    stays: bool
    """Whether the old field is kept next to the new field."""


def list_converted_resources(component: Component, provider: Provider) -> tuple[Resource, ...]:
    """Return the kinds whose objects a component's manager converts between versions."""
    former = provider.former_contracts
    return tuple(resource for resource in component.resources if is_converted(resource, former))


def needs_webhook_server(component: Component, provider: Provider) -> bool:
    """Return whether a component's manager must serve requests from the API server or core."""
    converts = bool(list_converted_resources(component, provider))
    return component.type == "runtime-extension" or converts or bool(list_admitted_kinds(component))


def has_webhooks(provider: Provider) -> bool:
    """Return whether any manager must serve requests from the API server or core."""
    return any(needs_webhook_server(component, provider) for component in provider.components)


def has_conversion(provider: Provider) -> bool:
    """Return whether any of the provider's managers converts objects between versions."""
    return any(list_converted_resources(component, provider) for component in provider.components)


def find_contract_version(resource: Resource, contract: str) -> str:
    """Return the highest served API version for a contract version (GEN-03), or an empty string."""
    served = (v.name for v in resource.versions if v.served and v.contract.version == contract)
    return max(served, key=rank_api_version, default="")


def compare_shapes(resource: Resource) -> tuple[ShapeChange, ...]:
    """Return the changes between contract versions that a kind's conversion applies, in order.

    Raises KeyError if the differences between the contract versions are not recorded.
    """
    by_contract = {version.contract.version: version for version in resource.versions}
    if len(by_contract) < 2:  # the versions of earlier contracts are gone
        return ()
    # Contracts sort by name: v1beta1 comes before v1beta2.
    (_, old), *_, (_, new) = sorted(by_contract.items())
    schemas = [_build_contract_schema(resource, version) for version in (old, new)]
    role = resource.role.value.removesuffix("Template")
    changes = (
        _change(change, resource.role.is_template, *schemas)
        for change in new.contract.upgrades[old.contract.version].of(role)
        if change.where is Where.OBJECT
    )
    return tuple(change for change in changes if change is not None)


def _build_contract_schema(resource: Resource, version: ApiVersion) -> Schema:
    """Return a version's schema, in which moved fields are at the contract's paths, too.

    A conversion moves them there first.
    """
    schema: Schema = build_version_schema(resource, version)
    for path, _ in list_field_paths(resource, version):
        schema = add_property(schema, path.split("."), {})
    return schema


def list_converted_paths(resource: Resource) -> dict[VersionName, FieldPaths]:
    """Return the contract fields that versions have elsewhere, by version; empty if none has any.

    Each is a pair of the path in the contract and the path in the CRD.
    """
    found = {each.name: list_field_paths(resource, each) for each in resource.versions}
    return {version: paths for version, paths in found.items() if paths}


def _change(
    change: FieldChange, is_template: bool, old_schema: Schema, new_schema: Schema
) -> ShapeChange | None:
    """Return the change limited to fields that the kind has, as many are optional, or None."""
    old = has_path(_path(change.old, is_template), old_schema)
    new = has_path(_path(change.new, is_template), new_schema)
    # A field with the same path and value needs no conversion, because everything without a rule is
    # copied.
    if not (old or new) or (old == new and change.conversion is FieldConversion.AS_IS):
        return None
    if (change.old and change.new) and not (old and new):
        # Both shapes have the same place if only one of them has this field.
        if has_path(old, new_schema) or has_path(new, old_schema):
            return None
        return ShapeChange(old, new, FieldConversion.NONE.value, False)
    # A kind may keep a field that the contract moved, such as status.ready.
    kept = bool(new) and old != new and bool(has_path(old, new_schema))
    stays = change.kind is ChangeKind.COPIED or kept
    return ShapeChange(old, new, change.conversion.value, stays)


def _path(dotted: str, is_template: bool) -> Path:
    keys = tuple(dotted.split(".")) if dotted else ()
    if is_template and keys:
        return ("spec", "template", *keys)
    return keys


def has_path(path: Path, schema: Schema) -> Path:
    """Return ``path`` if the schema declares it, else an empty path."""
    found: Any = schema
    for key in path:
        found = found.get("properties", {}).get(key)
        if found is None:
            return ()
    return path


def list_migrated_resources(component: Component, provider: Provider) -> tuple[Resource, ...]:
    """Return the kinds whose stored objects a component's manager migrates (CRD-16).

    Templates and identities are included, because reconciling does not rewrite them.  Releases for
    an earlier contract version may have stored objects in an API version that no longer exists, and
    users may upgrade directly from such a release.
    """
    return tuple(
        resource
        for resource in component.resources
        if len(resource.versions) > 1 or provider.former_contracts
    )


def has_migration(provider: Provider) -> bool:
    """Return whether any of the provider's managers migrates stored objects."""
    return any(list_migrated_resources(component, provider) for component in provider.components)
