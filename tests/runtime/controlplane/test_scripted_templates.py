"""Changes of templates, which concern the control planes that use them."""

from __future__ import annotations

import asyncio

import pytest

from capsmith_runtime.kube.client import NamespacedName
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.controlplane.base import ControlPlaneConformance
from capsmith_runtime.testing.controlplane.environment import ControlPlaneEnvironment
from capsmith_runtime.testing.controlplane.fake_machines import template_of
from tests.runtime.controlplane import scripted_provider
from tests.runtime.support.decoding import record_decoded

PROVIDER = scripted_provider.PROVIDER


class TestTemplates(ControlPlaneConformance):
    """Each tenant may change a template at any time."""

    @pytest.mark.parametrize("is_used", [True, False])
    @scenario
    async def test_only_control_planes_that_use_a_template_are_decoded(
        self, env: ControlPlaneEnvironment, is_used: bool
    ) -> None:
        await env.restart()
        await env.running(1)
        (control_plane,) = env.api.all("KeelControlPlane")
        metadata, machines = control_plane["metadata"], control_plane["spec"]["machineTemplate"]
        used = machines["infrastructureRef"]["name"]
        env.api.add(template_of("unused"))
        await asyncio.sleep(1)
        with pytest.MonkeyPatch.context() as patch:
            decoded = record_decoded(patch)
            key = NamespacedName(metadata["namespace"], used if is_used else "unused")
            env.api.change("FakeMachineTemplate", key, {"metadata": {"labels": {"a": "b"}}})
            await asyncio.sleep(1)
        assert key.name in decoded
        assert (metadata["name"] in decoded) is is_used
