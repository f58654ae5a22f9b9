"""Secrets with the name of a configuration that it, a former one or another object owns."""

from __future__ import annotations

from capsmith_runtime.kube.client import NamespacedName
from capsmith_runtime.testing.bootstrap.environment import (
    BootstrapEnvironment,
    reference_to,
)
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.bootstrap.base import BootstrapConformance


class TestBootstrapSecrets(BootstrapConformance):
    """Secrets with the name of a configuration that it, a former one or another object owns."""

    @scenario
    async def test_restored_objects_own_their_secret_again(self, env: BootstrapEnvironment) -> None:
        """After a restore from a backup, a configuration owns its Secret again.

        The owner references of the backup have UIDs that no longer exist.

        Proves: BC-06, SM-06.
        """
        _, key = await env.running_worker()
        env.adopt("Machine", key)
        before = env.data(key)
        await env.stop()
        _replace(env, key)
        env.start()
        await env.has_data(key)
        secret = env.secret(key)
        assert secret is not None
        (owner,) = secret["metadata"]["ownerReferences"]
        assert owner["uid"] == env.config(key)["metadata"]["uid"]
        assert env.data(key) == before


def _replace(env: BootstrapEnvironment, key: NamespacedName) -> None:
    """Replace configuration and Machine by copies with other uids, without status."""
    machine, config = env.api.find("Machine", key), env.config(key)
    assert machine is not None
    for obj in (config, machine):
        env.api.remove(obj["kind"], key)
        for name in ("uid", "resourceVersion", "generation"):
            del obj["metadata"][name]
        obj.pop("status", None)
    config["metadata"]["ownerReferences"] = [reference_to(env.api.add(machine))]
    env.api.add(config)
