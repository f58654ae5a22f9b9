"""What a description says of a kind: its template, a pool's machines, a control plane's Machines.

The spec of the bootstrap configurations of a control plane's Machines is part of the control
plane's own, as ``bootstrapConfigSpec``: a ClusterClass clones and patches nothing else of a control
plane (CP-30), and what is embedded needs no owner to be moved with its cluster (MV-06), as a
separate template would.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from capsmith.cel_text import remove_transition_rules
from capsmith.provider.model import Field, GroupKind, Schema
from capsmith.provider.naming import name_attribute
from capsmith.provider_yaml.field_schemas import convert_field, convert_rule, is_required

if TYPE_CHECKING:
    from capsmith.provider.draft import Draft
    from capsmith.provider_yaml.model import KindSpec, ProviderSpec

FIELD = "bootstrapConfigSpec"
MANAGED = "externalManagedControlPlane"
"""The feature that makes a control plane one without machines (CP-25)."""
_FREE: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
MACHINES = "machines"
"""The feature of a pool that has a Machine for each of its machines (MP-07)."""
WITHOUT_TEMPLATE = frozenset({"IPPool", "GlobalIPPool", "Addon", "Resource"})
"""Roles whose kinds come without a template kind."""
_OF_CLASSES = frozenset({"InfraCluster", "ControlPlane"})
"""Roles of which each ClusterClass names a template."""


def has_template(described: KindSpec) -> bool:
    """Return whether capsmith adds a template kind."""
    return described.implements not in WITHOUT_TEMPLATE and described.template is not False


def supports_classes(spec: ProviderSpec) -> bool:
    """Return whether ClusterClasses can use all kinds of clusters and control planes."""
    return all(
        described.template is not False
        for _, _, described in spec.kinds()
        if described.implements in _OF_CLASSES
    )


def template_short_names(described: KindSpec) -> tuple[str, ...]:
    """Return the short names of a kind's template."""
    template = described.template
    names = () if template is None or isinstance(template, bool) else template.short_names
    return names or ()


def is_machine_based(described: KindSpec) -> bool:
    """Return whether a kind is a control plane whose instances are Machines."""
    switched = described.features or {}
    return described.implements == "ControlPlane" and not switched.get(MANAGED, False)


def build_bootstrap_field(bootstrap: GroupKind, draft: Draft) -> Field:
    """Return the field of a control plane's spec that holds the spec of the configurations.

    Rules that compare with the value before are left out: changing it is a rollout (CP-20).
    """
    own = draft.spec.section("bootstrap").get(bootstrap.kind)
    description = f"Spec of the {bootstrap.kind} of each Machine; a change replaces the Machines."
    if own is None or bootstrap.group != draft.groups["bootstrap"]:
        return Field(
            FIELD, name_attribute(FIELD), {**_FREE, "description": description}, required=False
        )
    fields = own.spec or {}
    schema: dict[str, Any] = {
        "description": description,
        "type": "object",
        "properties": {name: convert_field(field) for name, field in fields.items()},
    }
    required = [name for name, field in fields.items() if is_required(field)]
    if required:
        schema["required"] = required
    rules = [convert_rule(rule) for rule in own.validations or ()]
    if rules:
        schema["x-kubernetes-validations"] = rules
    return Field(FIELD, name_attribute(FIELD), remove_transition_rules(schema), bool(required))
