"""What `clusterctl init` made of the components is what runs."""

from __future__ import annotations

from pathlib import Path

from capsmith.clusters.processes.wait import eventually
from tests.e2e.scenario import Scenario
from tests.e2e.stack import CONCURRENCY, Site


def test_variable_arrives(scenario: Scenario, site: Site) -> None:
    """A variable given to clusterctl goes through the Deployment to the process."""
    wanted = f"--concurrency={CONCURRENCY}"
    (deployment,) = scenario.client.list("apps/v1", "Deployment", scenario.stack.provider.namespace)
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert wanted in container["args"]
    eventually(lambda: wanted in _arguments(site), what="the argument of the process")


def _arguments(site: Site) -> list[str]:
    """None in the moment in which it is started again."""
    try:
        text = Path(f"/proc/{site.controllers.process.pid}/cmdline").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return text.split("\0")
