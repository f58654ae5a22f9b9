"""Identities: found, reported, and kept while clusters use them."""

from __future__ import annotations

from collections.abc import Sequence

from capsmith_runtime.infrastructure.controllers import InfrastructureControllers
from capsmith_runtime.infrastructure.kinds import IdentityKind
from capsmith_runtime.kube.client import JSON, NamespacedName, key_of
from capsmith_runtime.testing.conformance.infrastructure.base import (
    InfrastructureCase,
    InfrastructureConformance,
)
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from capsmith_runtime.testing.infrastructure.fake_core import NAMESPACE
from capsmith_runtime.testing.provider import ProviderUnderTest


class IdentityConformance(InfrastructureConformance):
    """Scenarios with each kind of identities."""

    @classmethod
    def selects(cls, identity: IdentityKind) -> bool:
        """Return whether the tests of this class are about the kind."""
        return True

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[InfrastructureCase]:
        """Return only kinds of a provider with identities."""
        return [
            InfrastructureCase(
                provider=provider,
                core_version=version,
                component=component,
                controllers=controllers,
                cluster_kind=cluster_kind,
                machine=machine_kind,
                identity=identity,
            )
            for component, controllers in provider.groups_of(InfrastructureControllers)
            for index, identity in enumerate(controllers.identities)
            if cls.selects(identity)
            for version in provider.core_versions
            # Which of several kinds uses the credentials makes no difference.
            for cluster_kind in [controllers.clusters[index % len(controllers.clusters)]]
            for machine_kind in controllers.machines[:1]
        ]


def kind_of(env: InfrastructureEnvironment) -> IdentityKind:
    """Return the kind of identities."""
    assert env.core.identity_kind is not None
    return env.core.identity_kind


def kind_name(env: InfrastructureEnvironment) -> str:
    """Return the name of the kind."""
    return kind_of(env).resource.kind


def identity_of(env: InfrastructureEnvironment) -> JSON:
    """Return the identity that clusters use."""
    (identity,) = env.api.all(kind_name(env))
    return identity


def secret_of(env: InfrastructureEnvironment) -> JSON:
    """Return its Secret."""
    name = identity_of(env)["spec"]["secretRef"]["name"]
    namespace = NAMESPACE if kind_of(env).resource.namespaced else env.component.namespace
    secret = env.api.find("Secret", NamespacedName(namespace, name))
    assert secret is not None
    return secret


def owners_of(env: InfrastructureEnvironment, secret: JSON) -> list[str]:
    """Return the names of the owners of a Secret."""
    found = env.api.find("Secret", key_of(secret))
    assert found is not None
    return [owner["name"] for owner in found["metadata"].get("ownerReferences") or ()]


def copy_of(obj: JSON) -> JSON:
    """Return an object as a user would create it again."""
    gone = ("uid", "resourceVersion", "generation", "ownerReferences", "finalizers", "labels")
    metadata = {name: value for name, value in obj["metadata"].items() if name not in gone}
    return {name: value for name, value in obj.items() if name != "status"} | {"metadata": metadata}
