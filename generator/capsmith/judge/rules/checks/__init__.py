"""The named checks that rules refer to, a module for each kind of thing that is checked."""

from capsmith.judge.rules.checks import (
    access,
    cluster_classes,
    components,
    crds,
    flavors,
    metadata,
    objects,
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
    flavors,
    metadata,
    objects,
    shapes,
    templates,
    validations,
    versions,
)
