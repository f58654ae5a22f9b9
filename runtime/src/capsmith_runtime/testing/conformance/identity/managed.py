"""Managed control planes whose identity is missing."""

from __future__ import annotations

from collections.abc import Sequence

from capsmith_runtime.controlplane.managed.controller import ManagedControlPlaneKind
from capsmith_runtime.testing.conformance.base import KindCase, scenario
from capsmith_runtime.testing.conformance.controlplane.base import ManagedControlPlaneConformance
from capsmith_runtime.testing.controlplane.managed_environment import (
    CONTROL_PLANE,
    ManagedControlPlaneEnvironment,
)
from capsmith_runtime.testing.identities import (
    find_identity_kinds,
    has_sessions,
    refer_to_first,
    remove_identity,
)
from capsmith_runtime.testing.provider import ProviderUnderTest


class TestManagedControlPlaneIdentities(ManagedControlPlaneConformance):
    """Identities of managed control planes; requires ``credentials`` and a session factory."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[KindCase[ManagedControlPlaneKind]]:
        """Return the cases for the kinds that use identities through sessions."""
        return [case for case in super().cases(provider) if has_sessions(case.kind)]

    @scenario
    async def test_a_control_plane_without_its_identity_is_not_forgotten(
        self, env: ManagedControlPlaneEnvironment
    ) -> None:
        """A control plane whose identity is gone is deleted only when the identity is back.

        Without credentials nothing can be found or deleted: do not catch the error from
        ``session``.
        """
        kinds = find_identity_kinds(env.component)
        reference = refer_to_first(env.manifests, kinds)
        await env.running(identityRef=reference)
        identity = remove_identity(env.api, reference)
        env.api.remove(env.kind.resource.kind, CONTROL_PLANE)
        await env.quiet()
        assert len(env.hosting.control_planes()) == 1, "deleted without credentials"
        assert env.obj()["metadata"]["finalizers"] == [env.kind.finalizer]

        env.api.add(identity)
        await env.eventually(
            "it is gone", lambda: env.api.find(env.kind.resource.kind, CONTROL_PLANE) is None
        )
        assert not env.hosting.control_planes()
