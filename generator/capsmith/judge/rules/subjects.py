"""Subjects of RBAC bindings, as clusterctl installs them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from capsmith.manifests.parse import text_of
from capsmith.manifests.variable_values import SAMPLE

_UNKNOWN = re.compile(rf"{re.escape(SAMPLE)}|\$\{{\w+\}}")
"""A value that the user sets."""


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """A ServiceAccount of another provider."""

    namespace: str
    name: str

    @property
    def user(self) -> str:
        """Return the name by which the API server knows it."""
        return f"system:serviceaccount:{self.namespace}:{self.name}"

    @property
    def groups(self) -> frozenset[str]:
        """Return the groups to which the API server assigns it."""
        own = f"system:serviceaccounts:{self.namespace}"
        return frozenset({own, "system:serviceaccounts", "system:authenticated"})


def is_subject(account: ServiceAccount, subject: Any, installed_in: str) -> bool:
    """Return whether a subject is ``account``, or a group of it.

    clusterctl replaces the namespace of ServiceAccounts in bindings with ``installed_in``, the
    namespace of the provider; with '' it stays.  Source: fixTargetNamespace in
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
    """Return whether ``text`` is ``value`` with some values for its variables."""
    parts = (re.escape(part) for part in _UNKNOWN.split(text))
    return re.fullmatch(".*".join(parts), value) is not None
