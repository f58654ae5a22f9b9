"""The content of bootstrap data, as far as their format is known."""

from __future__ import annotations

import base64

from capsmith_runtime.kube.client import NamespacedName
from capsmith_runtime.testing.bootstrap.content import find_mistakes
from capsmith_runtime.testing.bootstrap.environment import BootstrapEnvironment
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.bootstrap.base import BootstrapConformance


class TestBootstrapContent(BootstrapConformance):
    """The content of bootstrap data: mistakes that keep a machine from running them."""

    @scenario
    async def test_the_data_fit_their_format(self, env: BootstrapEnvironment) -> None:
        """Machines of each role, and pools, get data that their format allows.

        Data of the format ``cloud-config`` begin with ``#cloud-config``, or as another sort that
        cloud-init runs, and are YAML without repeated keys; those of ``ignition`` are JSON with a
        version.  Other formats are not looked into.

        Proves: BC-06.
        """
        cluster = env.add_cluster()
        first = env.add_machine(cluster, "cp1", control_plane=True)
        await env.has_data(first)
        env.control_plane_is_initialized(cluster)
        others = [
            env.add_machine(cluster, "cp2", control_plane=True),
            env.add_machine(cluster, "m1"),
            env.add_pool(cluster),
        ]
        for key in (first, *others):
            await env.has_data(key)
            found = find_mistakes(env.data(key), _format(env, key))
            assert not found, f"the data of {key.name} cannot be run: {'; '.join(found)}"


def _format(env: BootstrapEnvironment, key: NamespacedName) -> str:
    secret = env.secret(key)
    assert secret is not None
    return base64.b64decode(secret["data"]["format"]).decode()
