"""Permissions, both as RBAC rules and as declared by the runtime library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from string import Template
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple, get_args

from capsmith.contract.reading import describe_errors, make_error
from capsmith.provider.model import Role

if TYPE_CHECKING:
    from pydantic import TypeAdapter


class Permission(NamedTuple):
    """An RBAC rule in a generated Role or ClusterRole, and the reason for it."""

    groups: tuple[str, ...]
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    reason: str
    names: tuple[str, ...] = ()

    def includes(self, other: Permission) -> bool:
        """Return whether this permission grants everything that ``other`` grants."""
        return not self.names and all(
            set(theirs) <= set(ours)
            for ours, theirs in (
                (self.groups, other.groups),
                (self.resources, other.resources),
                (self.verbs, other.verbs),
            )
        )


def build_policy_rule(permission: Permission) -> dict[str, Any]:
    """Return the permission as a ``PolicyRule`` for a Role or ClusterRole."""
    rule: dict[str, Any] = {
        "apiGroups": list(permission.groups),
        "resources": list(permission.resources),
    }
    if permission.names:
        rule["resourceNames"] = list(permission.names)
    return {**rule, "verbs": list(permission.verbs)}


Feature = Literal[
    "addressesFromPools",
    "capacity",
    "clusterScoped",
    "converted",
    "inPools",
    "migrated",
    "namespaced",
    "ofMachines",
    "reconciled",
    "template",
    "withSecret",
    "withStatus",
    "withoutMachines",
    "workloadClient",
]
"""Feature on which a permission can depend: a contract feature, or one defined in :mod:`.kinds`."""

Placeholder = Literal["bootstrap_group", "migrated_crd", "namespace", "provider"]
"""Placeholder in a group or object name, such as ``$namespace``. It is replaced by one or more
values.
"""

_STRICT: Final = {"extra": "forbid"}


@dataclass(frozen=True, slots=True)
class KindSelector:
    """Selects kinds that have all of ``features`` and one of ``roles``. No roles mean any role."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _STRICT

    roles: tuple[Role, ...] = ()
    features: tuple[Feature, ...] = ()


@dataclass(frozen=True, slots=True)
class DeclaredRule:
    """An entry in a ``permissions.yaml``: either ``kinds``, or ``groups`` with ``resources``."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _STRICT

    verbs: tuple[str, ...]
    reason: str
    rules: tuple[str, ...] = ()
    """Ids of the contract rules that ``reason`` mentions."""
    when: KindSelector | None = None
    """Condition: the rule is left out if this matches none of the component's kinds."""
    kinds: KindSelector | None = None
    """Selects the component's own kinds to grant access to; without a match, the rule is unused."""
    subresource: str = ""
    """Subresource of ``kinds`` to which the rule applies; empty for the kinds themselves."""
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    """Names of the objects to which the rule applies; empty for all objects. Placeholders are
    allowed, as in ``groups``.
    """
    uncalled: Mapping[str, str] = field(default_factory=dict)
    """Reasons, by verb, for granting verbs that no request of the library uses.

    A key such as ``get machines`` names a single resource, for a rule with several ``resources``
    where the library uses the verb with only some of them.
    """

    def __post_init__(self) -> None:
        if (self.kinds is None) != bool(self.groups and self.resources):
            raise ValueError("either kinds, or groups and resources")
        if self.subresource and self.kinds is None:
            raise ValueError("a subresource without kinds")
        if not {key.partition(" ")[0] for key in self.uncalled} <= set(self.verbs):
            raise ValueError("a verb that is not called is not granted either")
        for text in (*self.groups, *self.names):
            if not set(Template(text).get_identifiers()) <= set(get_args(Placeholder)):
                raise ValueError(f"{text} has an unknown placeholder")


@dataclass(frozen=True, slots=True)
class DeclaredPermissions:
    """The content of a ``permissions.yaml``: permissions that one library folder needs."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _STRICT

    manager: tuple[DeclaredRule, ...] = ()
    """Cluster-wide rules for the manager."""
    namespace: tuple[DeclaredRule, ...] = ()
    """Rules for the manager that apply only in its own namespace."""
    aggregate: tuple[DeclaredRule, ...] = ()
    """Rules for other Cluster API managers, which apply to each of ``kinds``."""

    def __post_init__(self) -> None:
        if any(rule.kinds is None for rule in self.aggregate):
            raise ValueError("aggregated rules are about kinds")


Declarations = Mapping[str, DeclaredPermissions]
"""Declared permissions by library folder, such as ``infrastructure``."""


@cache
def _adapter() -> TypeAdapter[DeclaredPermissions]:
    from pydantic import TypeAdapter  # builds validators, which only fresh permissions need

    return TypeAdapter(DeclaredPermissions)


def parse_permissions(data: Any, file: str) -> DeclaredPermissions:
    """Validate the data from a ``permissions.yaml`` in the runtime library.

    ``file`` is the name to use in error messages.  Raises UnreadableInput, whose message lists all
    errors.
    """
    from pydantic import ValidationError

    try:
        return _adapter().validate_python(data)
    except ValidationError as error:
        raise make_error(file, "; ".join(describe_errors(error, data))) from None
