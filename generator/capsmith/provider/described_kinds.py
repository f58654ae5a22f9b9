"""Properties of a described kind: its template, and whether a control plane has Machines.

A control plane embeds the spec for its Machines' bootstrap configurations as
``bootstrapConfigSpec``.  A ClusterClass can clone and patch only the control plane itself (CP-30).
Unlike a separate template, an embedded spec needs no owner to move with the cluster (MV-06).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from capsmith.cel_text import remove_transition_rules
from capsmith.provider.fields import Field, Schema
from capsmith.provider.model import GroupKind
from capsmith.provider.naming import name_attribute
from capsmith.provider_yaml.field_schemas import convert_field, convert_rule, is_required

if TYPE_CHECKING:
    from capsmith.provider.draft import Draft
    from capsmith.provider_yaml.forms import FieldLike
    from capsmith.provider_yaml.model import KindSpec, ProviderSpec

FIELD = "bootstrapConfigSpec"
MANAGED = "externalManagedControlPlane"
"""Feature of managed control planes, which have no Machines (CP-25)."""
_FREE: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
MACHINES = "machines"
"""Feature of machine pools that have one Machine per infrastructure machine (MP-07)."""
WITHOUT_TEMPLATE = frozenset({"IPPool", "GlobalIPPool", "Addon", "Resource"})
"""Roles whose kinds never have a template."""
ROLES_OF_MACHINES = frozenset({"InfraMachine", "Remediation"})
"""Roles that an infrastructure provider without machines cannot have; neither can it have a pool
with the feature ``machines``."""
_OF_CLASSES = frozenset({"InfraCluster", "ControlPlane"})
"""Roles of which every ClusterClass references a template."""


def find_instance_status(described: KindSpec) -> Mapping[str, FieldLike] | None:
    """Return the status fields declared for each machine of a pool, or None if there are none."""
    found: Mapping[str, FieldLike] | None = getattr(described, "instance_status", None)
    return found


def has_template(described: KindSpec) -> bool:
    """Return whether a template is generated for a kind in `provider.yaml`."""
    return described.implements not in WITHOUT_TEMPLATE and described.template is not False


def _moves_fields(described: KindSpec) -> bool:
    """Return whether a kind has fields of the contract at other paths in any API version."""
    written = [described.contract_fields]
    written += [each.contract_fields for each in (described.versions or {}).values()]
    return any(each is not None and each.paths for each in written)


def supports_classes(spec: ProviderSpec) -> bool:
    """Return whether ClusterClasses can use all the provider's cluster and control plane kinds.

    A provider without machines needs its own control planes: kubeadm's consist of Machines.  Core
    cannot complete those that have the reference to their Machines' infrastructure elsewhere.
    """
    templates = [
        (described.implements, described.template is not False and not _moves_fields(described))
        for _, _, described in spec.kinds()
        if described.implements in _OF_CLASSES
    ]
    has_control_plane = "ControlPlane" in dict(templates) or spec.machines is not False
    return has_control_plane and all(has_one for _, has_one in templates)


def template_short_names(described: KindSpec) -> tuple[str, ...]:
    """Return the kubectl short names for a kind's template; empty if it has none."""
    template = described.template
    names = () if template is None or isinstance(template, bool) else template.short_names
    return names or ()


def is_machine_based(described: KindSpec) -> bool:
    """Return whether a kind is a control plane whose replicas are Machines."""
    switched = described.features or {}
    return described.implements == "ControlPlane" and not switched.get(MANAGED, False)


def build_bootstrap_field(bootstrap: GroupKind, draft: Draft) -> Field:
    """Return the control plane's spec field that embeds the bootstrap configuration's spec.

    The field accepts any content if the kind belongs to another provider.  CEL rules that use
    ``oldSelf`` are left out, because changing the field triggers a rollout (CP-20).
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
