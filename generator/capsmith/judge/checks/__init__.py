"""Static checks, one module per subject.

Contract rules, which are data in ``schemas/contracts/*/rules/``, refer to these checks by name.
"""

from capsmith.judge.checks import (
    access,
    admission,
    built_in_objects,
    class_definitions,
    cluster_classes,
    components,
    crds,
    definitions,
    flavors,
    metadata,
    objects,
    references,
    removed_versions,
    repeated_objects,
    shapes,
    template_references,
    templates,
    topologies,
    validations,
    versions,
)
from capsmith.judge.checks.registry import NamedCheck, Violation, list_checks

__all__ = ["NamedCheck", "Violation", "list_checks"]

_MODULES = (
    access,
    admission,
    built_in_objects,
    class_definitions,
    cluster_classes,
    components,
    crds,
    definitions,
    flavors,
    metadata,
    objects,
    references,
    removed_versions,
    repeated_objects,
    shapes,
    template_references,
    templates,
    topologies,
    validations,
    versions,
)
