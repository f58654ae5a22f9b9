"""What runs on the machines of a control plane, such as etcd, while the machines are replaced."""

from __future__ import annotations

from collections.abc import Sequence

from capsmith_runtime.controlplane.kind import ControlPlaneKind
from capsmith_runtime.testing.adjustments import find_members_double
from capsmith_runtime.testing.conformance.base import KindCase, scenario
from capsmith_runtime.testing.conformance.controlplane.base import ControlPlaneConformance
from capsmith_runtime.testing.controlplane.environment import ControlPlaneEnvironment
from capsmith_runtime.testing.controlplane.fake_machines import find_node_name
from capsmith_runtime.testing.provider import ProviderUnderTest


class TestControlPlaneMembers(ControlPlaneConformance):
    """Members join and leave with their machines; requires a double of :func:`use_members_double`.

    A member whose machine is deleted before it has left still counts for the quorum of etcd.
    """

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[KindCase[ControlPlaneKind]]:
        """Return the cases of a provider, or none if ``tests/conftest.py`` sets no double."""
        return [] if find_members_double() is None else super().cases(provider)

    @scenario
    async def test_members_leave_before_they_are_scaled_down(
        self, env: ControlPlaneEnvironment
    ) -> None:
        """Scaling down removes each member before its server is deleted.

        Proves: CP-04, SM-05.
        """
        await env.running(5)
        await _check_members(env)
        for replicas in (3, 1):
            env.change(replicas=replicas)
            await env.settled(replicas)
            await _check_members(env)

    @scenario
    async def test_members_leave_before_they_are_replaced(
        self, env: ControlPlaneEnvironment
    ) -> None:
        """An upgrade removes each member before its server is deleted, whatever restarts.

        Proves: CP-08, SM-05, SM-09.
        """
        await env.running(3)
        before = set(env.names())
        env.change_machines()
        await env.eventually("the first is replaced", lambda: before - set(env.names()))
        await env.restart()
        await env.eventually("all are new", lambda: not before & set(env.names()))
        await env.settled(3)
        await _check_members(env)

    @scenario
    async def test_a_broken_member_leaves(self, env: ControlPlaneEnvironment) -> None:
        """Remediation removes the member of a broken Machine, too.

        Proves: CP-31, SM-05.
        """
        await env.running(3)
        # The youngest, because the oldest one is the first in ``machines``.
        first = set(env.names())
        env.change(replicas=4)
        await env.settled(4)
        (broken,) = set(env.names()) - first
        for condition_type in ("HealthCheckSucceeded", "OwnerRemediated"):
            env.machines.condition(broken, condition_type, "False")
        await env.eventually("it is gone", lambda: broken not in env.names())
        await env.settled(4)
        await _check_members(env)


async def _check_members(env: ControlPlaneEnvironment) -> None:
    """Fail if a Machine is no member, or if a member has not left before its server."""
    double = env.machines.members
    assert double is not None
    nodes = sorted(map(find_node_name, env.names()))
    await env.eventually("each Node is a member", lambda: set(nodes) <= set(double.members()))
    assert env.machines.left_behind == [], "still members when their servers were deleted"
    assert sorted(double.members()) == nodes
