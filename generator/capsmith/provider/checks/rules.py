"""Rules on the whole spec of a kind: they read the contract's fields beside the author's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capsmith.cel_text import is_transition
from capsmith.provider.crd import spec_schema
from capsmith.provider.model import Provider
from capsmith.provider_yaml.rules import check_expressions
from capsmith.yamldoc.place import Place

if TYPE_CHECKING:
    from capsmith.provider_yaml.model import ProviderSpec


def check_kind_rules(spec: ProviderSpec, provider: Provider, top: Place) -> None:
    """Compile ``validations`` in every CRD that has them; ids as for the rules of fields.

    Each version has the fields of its contract, and a template only some of its object's.
    """
    for section, kind, described in spec.kinds():
        rules = described.validations or ()
        if not rules:
            continue
        for resource in provider.resources:
            if str(resource.kind) not in (kind, f"{kind}Template"):
                continue
            # A template has no transition rules: see spec_schema.
            kept = [
                (index, rule)
                for index, rule in enumerate(rules)
                if not (resource.role.is_template and is_transition(rule.rule))
            ]
            for version in resource.versions:
                schema = spec_schema(resource, version)
                check_expressions(kept, schema, top.at(section, kind, "validations"))
