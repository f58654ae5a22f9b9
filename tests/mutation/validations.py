"""Break the validation rules of CRDs."""

from __future__ import annotations

from collections.abc import Iterator

from capsmith.judge.checks.validations import RULES
from tests.mutation.mutants import Mutant, Site, edited, operator, put

_RULES = (
    {"rule": "self ==="},
    {"rule": "selves == self"},
    {"rule": "self.undeclared == 1"},
    {"rule": "has(self.apiVersion) ? self : self"},
    {"rule": "self.kind > 1"},
    {"rule": "self.metadata.labels.size() == 0"},
    {"rule": ""},
    {"rule": "true", "reason": "Other"},
    {"rule": "true", "message": "a\nb"},
    {"rule": "true", "fieldPath": ".undeclared"},
    {"rule": "true", "messageExpression": "1"},
    {"rule": "true", "optionalOldSelf": True},
)
"""What no object has as a rule."""


@operator("schema-rules")
def schema_rules(site: Site) -> Iterator[Mutant]:
    for crd in site.bundle.crds:
        for version in crd.versions:
            place = (*crd.schema_path(version.name), RULES)
            for rule in _RULES:
                yield edited(crd.manifest, f"{version.name} has {rule}", put(place, [rule]))
