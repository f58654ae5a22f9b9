"""The spec of the bootstrap configurations that a control plane creates."""

from __future__ import annotations

from typing import Any

import pytest

from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.controlplane.base import ControlPlaneConformance
from capsmith_runtime.testing.controlplane.environment import ControlPlaneEnvironment
from tests.runtime.controlplane import scripted_provider

PROVIDER = scripted_provider.PROVIDER
_GIVEN = {"verbosity": 4}


class TestBootstrapSpec(ControlPlaneConformance):
    """A CRD can refuse an empty spec, and can require one."""

    @pytest.mark.parametrize("spec", [None, {}, _GIVEN], ids=["none", "empty", "given"])
    @scenario
    async def test_it_is_what_the_control_plane_has(
        self, env: ControlPlaneEnvironment, spec: dict[str, Any] | None
    ) -> None:
        changes = {} if spec is None else {"bootstrapConfigSpec": spec}
        await env.restart()
        await env.running(1, **changes)

        (configuration,) = env.api.all("KubeadmConfig")
        assert configuration.get("spec") == spec

    @scenario
    async def test_an_empty_one_replaces_no_machine(self, env: ControlPlaneEnvironment) -> None:
        await env.restart()
        await env.running(1)
        names = env.names()

        env.change(bootstrapConfigSpec={})
        await env.settled(1)
        assert env.names() == names

        env.change(bootstrapConfigSpec=_GIVEN)
        await env.settled(1)
        assert env.names() != names
