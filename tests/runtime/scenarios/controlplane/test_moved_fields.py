"""A control plane whose CRD has the reference to its Machines' infrastructure at another path."""

from __future__ import annotations

from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.controlplane.base import ControlPlaneConformance
from capsmith_runtime.testing.controlplane.environment import ControlPlaneEnvironment
from capsmith_runtime.testing.controlplane.fake_machines import template_of
from tests.golden.cases import EXAMPLES
from tests.runtime.scenarios.providers import provider_of

_TEXT = (EXAMPLES / "control-plane" / "provider.yaml").read_text(encoding="utf-8")
# Its package is imported beside that of the example, so that it must have another name.
_RENAMED = _TEXT.replace("keel", "sloop").replace("Keel", "Sloop")
PROVIDER = provider_of(
    "moved-fields",
    f"""{_RENAMED}    template: false
    contractFields:
      paths: {{spec.machineTemplate.infrastructureRef: spec.infrastructureTemplate}}
""",
)


class TestMovedFields(ControlPlaneConformance):
    """A control plane whose CRD has the reference to its Machines' infrastructure elsewhere."""

    @scenario
    async def test_machines_are_created_from_the_reference(
        self, env: ControlPlaneEnvironment
    ) -> None:
        """Proves: CP-13, CP-21."""
        await env.running(1)
        (before,) = env.names()
        spec = env.obj()["spec"]
        assert spec["infrastructureTemplate"]["name"] == "t1"
        assert "machineTemplate" not in spec
        env.api.add(template_of("t2"))
        env.change(machineTemplate=env.from_template("t2"))
        await env.eventually("it is new", lambda: env.names() and before not in env.names())
        await env.settled(1)
        (clone,) = env.api.all("FakeMachine")
        assert clone["spec"] == {"size": "t2"}

    @scenario
    async def test_a_template_that_appears_later_is_seen(
        self, env: ControlPlaneEnvironment
    ) -> None:
        """The reference decides which control planes a change of a template concerns."""
        env.add_control_plane(1, machineTemplate=env.from_template("t2"))
        await env.eventually("it waits", lambda: "t2 does not exist" in str(env.status()))
        await env.quiet()
        env.api.add(template_of("t2"))
        await env.settled(1)
