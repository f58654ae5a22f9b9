"""Find the permissions that a provider grants with Roles, ClusterRoles and bindings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from capsmith.manifests.bundle import Bundle
from capsmith.manifests.parse import SAMPLE, Manifest, list_of, mapping_of, text_of, texts_of

_UNKNOWN = re.compile(rf"{re.escape(SAMPLE)}|\$\{{\w+\}}")
"""A value that is set by a user."""


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """The ServiceAccount of another provider's manager, which needs access to the kinds."""

    namespace: str
    name: str

    @property
    def user(self) -> str:
        """Return the user name that the API server assigns to the account."""
        return f"system:serviceaccount:{self.namespace}:{self.name}"

    @property
    def groups(self) -> frozenset[str]:
        """Return the groups that the API server assigns to the account."""
        own = f"system:serviceaccounts:{self.namespace}"
        return frozenset({own, "system:serviceaccounts", "system:authenticated"})


def is_subject(account: ServiceAccount, subject: Any, installed_in: str) -> bool:
    """Return whether a binding's subject is ``account`` or one of the account's groups.

    ``installed_in`` is the provider's namespace, which clusterctl writes into bindings'
    ServiceAccounts.  If it is empty, their namespaces stay unchanged.  Source: fixTargetNamespace:
    https://github.com/kubernetes-sigs/cluster-api/blob/v1.14.2/cmd/clusterctl/client/repository/components.go
    """
    name = text_of(subject, "name")
    match text_of(subject, "kind"):
        case "User":
            return _may_be(name, account.user)
        case "Group":
            return any(_may_be(name, group) for group in account.groups)
        case "ServiceAccount":
            namespace = installed_in or text_of(subject, "namespace")
            return _may_be(name, account.name) and _may_be(namespace, account.namespace)
    return False


def _may_be(text: str, value: str) -> bool:
    """Return whether ``text`` can become ``value`` when its variables are replaced."""
    # A clusterctl variable may be replaced with any part of a name.
    parts = (re.escape(part) for part in _UNKNOWN.split(text))
    return re.fullmatch(".*".join(parts), value) is not None


_ROLES = ("ClusterRole", "Role")
_OF_KUBERNETES = ("admin", "edit", "view")
"""ClusterRoles in every cluster, which do not cover providers' kinds."""
POD = ("spec", "template", "spec")
"""Path to the pod spec in a Deployment."""
CONTAINERS = (*POD, "containers")
ACCOUNT = (*POD, "serviceAccountName")


@dataclass(frozen=True, slots=True)
class Grant:
    """A rule in a Role or ClusterRole. With the default values it grants everything."""

    groups: tuple[str, ...] = ("*",)
    resources: tuple[str, ...] = ("*",)
    verbs: tuple[str, ...] = ("*",)
    names: tuple[str, ...] = ()
    """Names of the objects that the rule applies to; empty if it applies to all objects."""

    def covers(self, group: str, resource: str, verb: str) -> bool:
        """Return whether the rule allows ``verb`` on ``resource``, which may be a subresource."""
        whole, _, sub = resource.partition("/")
        # RBAC has two wildcards for subresources; `machines` alone does not cover
        # `machines/status`.
        names = {resource, "*", f"{whole}/*", f"*/{sub}"} if sub else {resource, "*"}
        # The API server does not know the name of an object yet when it authorizes its creation.
        if verb == "create" and self.names and not sub:
            return False
        return (
            bool({group, "*"} & set(self.groups))
            and bool(names & set(self.resources))
            and bool({verb, "*"} & set(self.verbs))
        )


def find_missing(
    grants: Iterable[Grant], group: str, resource: str, verbs: Iterable[str]
) -> list[str]:
    """Return the verbs that no grant allows, in the given order.

    ``resource`` may include a subresource.  With ``grants = [Grant(("example.com",), ("boxes",),
    ("get",))]``, ``find_missing(grants, "example.com", "boxes", ["get", "list"])`` is ``["list"]``.
    """
    known = list(grants)
    return [verb for verb in verbs if not any(g.covers(group, resource, verb) for g in known)]


# Several checks request the same role.
@lru_cache(256)
def list_grants(role: Manifest) -> tuple[Grant, ...]:
    """Return the rules in a Role or ClusterRole."""
    return tuple(
        Grant(
            tuple(texts_of(rule, "apiGroups")),
            tuple(texts_of(rule, "resources")),
            tuple(texts_of(rule, "verbs")),
            tuple(texts_of(rule, "resourceNames")),
        )
        for rule in role.listing("rules")
    )


def find_aggregated(bundle: Bundle, label: str) -> tuple[Manifest, ...]:
    """Return the ClusterRoles that have the aggregation label ``label``."""
    return tuple(
        role
        for role in bundle.of("ClusterRole")
        if role.mapping("metadata", "labels").get(label) == "true"
    )


def find_managers(bundle: Bundle, container: str = "manager") -> tuple[Manifest, ...]:
    """Return the Deployments that run a manager, recognised by the container's name (CC-28)."""
    return tuple(
        deployment
        for deployment in bundle.of("Deployment")
        if any(text_of(part, "name") == container for part in containers(deployment))
    )


def containers(deployment: Manifest) -> list[Any]:
    """Return the containers in a Deployment's pod template."""
    return deployment.listing("spec", "template", "spec", "containers")


def list_arguments(deployment: Manifest) -> list[str]:
    """Return the commands and arguments of all the Deployment's containers as one list."""
    return [
        str(argument)
        for container in containers(deployment)
        for argument in (*list_of(container, "command"), *list_of(container, "args"))
    ]


def find_manager_grants(bundle: Bundle, deployment: Manifest) -> tuple[Grant, ...]:
    """Return the rules that a bundle's bindings grant to a Deployment's ServiceAccount."""
    account = text_of(deployment.document, "spec", "template", "spec", "serviceAccountName")
    return tuple(
        grant
        for binding in bundle.of("ClusterRoleBinding", "RoleBinding")
        if _binds(binding, account or "default")
        for grant in find_bound_grants(bundle, binding)
    )


def find_bound_grants(bundle: Bundle, binding: Manifest) -> Iterator[Grant]:
    """Yield the rules that a binding grants to its subjects, including rules from aggregated roles.

    If a ClusterRoleBinding refers to a ClusterRole outside the release, everything is assumed to be
    granted, unless the role is one of Kubernetes' own.
    """
    reference = binding.mapping("roleRef")
    named = (text_of(reference, "kind"), text_of(reference, "name"))
    # By name only, because a Role is in the namespace of its binding.
    role = next((each for each in bundle.of(*_ROLES) if (each.kind, each.name) == named), None)
    if role is not None:
        yield from list_grants(role)
        for part in _parts(bundle, role):
            yield from list_grants(part)
    # A false report would blame a provider for a role that exists in its users' clusters.
    elif binding.kind == "ClusterRoleBinding" and not _is_of_kubernetes(reference):
        yield Grant()


def _is_of_kubernetes(reference: Any) -> bool:
    name = text_of(reference, "name")
    return name in _OF_KUBERNETES or name.startswith("system:")


def _binds(binding: Manifest, account: str) -> bool:
    return any(
        text_of(subject, "kind") == "ServiceAccount" and text_of(subject, "name") == account
        for subject in binding.listing("subjects")
    )


def _parts(bundle: Bundle, role: Manifest) -> Iterator[Manifest]:
    """Yield the ClusterRoles that an aggregating ClusterRole combines."""
    for selector in role.listing("aggregationRule", "clusterRoleSelectors"):
        labels = mapping_of(selector, "matchLabels").items()
        for other in bundle.of("ClusterRole"):
            if labels and labels <= other.mapping("metadata", "labels").items():
                yield other
