"""The named checks that rules refer to, a module for each kind of thing that is checked."""

from capsmith.conformance.checks import (
    access,
    components,
    crds,
    extensions,
    flavors,
    labels,
    manager,
    metadata,
    pools,
    shapes,
    templates,
    variables,
)
from capsmith.conformance.checks.registry import NamedCheck, Problem, registered

__all__ = ["NamedCheck", "Problem", "registered"]

_MODULES = (
    access,
    components,
    crds,
    extensions,
    flavors,
    labels,
    manager,
    metadata,
    pools,
    shapes,
    templates,
    variables,
)
