"""The named checks that rules refer to, a module for each kind of thing that is checked."""

from capsmith.judge.rules.checks import (
    access,
    accounts,
    class_patches,
    class_templates,
    components,
    crds,
    extensions,
    flavors,
    labels,
    manager,
    metadata,
    objects,
    pools,
    served,
    shapes,
    templates,
    topology,
    validations,
    variables,
)
from capsmith.judge.rules.checks.registry import NamedCheck, Problem, registered

__all__ = ["NamedCheck", "Problem", "registered"]

_MODULES = (
    access,
    accounts,
    class_patches,
    class_templates,
    components,
    crds,
    extensions,
    flavors,
    labels,
    manager,
    metadata,
    objects,
    pools,
    served,
    shapes,
    templates,
    topology,
    validations,
    variables,
)
