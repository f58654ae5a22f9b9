"""The checks that rules name, with one module for each subject."""

from capsmith.judge.rules.checks import (
    access,
    cluster_classes,
    components,
    crds,
    definitions,
    flavors,
    metadata,
    objects,
    references,
    shapes,
    templates,
    validations,
    versions,
)
from capsmith.judge.rules.checks.registry import NamedCheck, Violation, list_checks

__all__ = ["NamedCheck", "Violation", "list_checks"]

_MODULES = (
    access,
    cluster_classes,
    components,
    crds,
    definitions,
    flavors,
    metadata,
    objects,
    references,
    shapes,
    templates,
    validations,
    versions,
)
