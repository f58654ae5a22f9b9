"""Mistakes in hooks, webhooks and what belongs to the manager itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.functional.mistakes.base import Kit, Mistake, edit_controller, read_example

_EXTENSION: Final = {
    "holds with another message at each call": Mistake(
        "src/*/extension.py",
        "        annotation = f",
        "        return RetryAfter(WAIT_SECONDS, str(uuid.uuid4()))\n        annotation = f",
    ),
    "renames the port of the server": Mistake(
        "runtime-extension/config/webhook/service.yaml",
        "targetPort: webhook-server",
        "targetPort: hooks",
    ),
    "allows the manager to change every registration": Mistake(
        "runtime-extension/config/rbac/role.yaml",
        "  resourceNames:\n  - beacon\n",
        "  resourceNames: []\n",
    ),
    "has the certificate issued for another Service": Mistake(
        "runtime-extension/config/certmanager/certificate.yaml",
        "-system-webhook.",
        "-system-hooks.",
    ),
}
_WEBHOOK = "src/*/webhooks/acme_machine.py"
_ADMISSION: Final = {
    "refuses the provider's own template": Mistake(
        _WEBHOOK,
        "        return ()\n",
        "        from capsmith_runtime.admission import FieldError\n\n"
        "        return (FieldError('size', 'must be one of small, large'),)\n",
    ),
    "refuses objects of a cluster that is not provisioned": Mistake(
        _WEBHOOK,
        "        return ()\n",
        "        from capsmith_runtime.admission import FieldError\n\n"
        "        if obj.cluster and not obj.cluster.infrastructure_provisioned:\n"
        "            return (FieldError('size', 'needs a network'),)\n"
        "        return ()\n",
    ),
    "needs the cluster of an object": Mistake(
        _WEBHOOK,
        "        return ()\n",
        "        from capsmith_runtime.admission import AdmissionWarning\n\n"
        "        return (AdmissionWarning(obj.cluster.name),)\n",
    ),
    "reads what provider.yaml does not declare": Mistake(
        _WEBHOOK,
        "        return ()\n",
        "        obj.client.get('v1', 'ConfigMap', 'sizes')\n        return ()\n",
    ),
    "defaults a field again that it has defaulted": Mistake(
        _WEBHOOK,
        "        return obj.spec\n",
        "        from dataclasses import replace\n\n"
        "        return replace(obj.spec, image=f'{obj.spec.image}-1')\n",
    ),
    "generates a default at each call": Mistake(
        _WEBHOOK,
        "        return obj.spec\n",
        "        from dataclasses import replace\n\n"
        "        return replace(obj.spec, image=uuid.uuid4().hex)\n",
    ),
}
_ADMISSION_DESCRIPTION = """\
capsmith: 1
name: acme
repository: https://github.com/acme/cluster-api-provider-acme
contracts: [v1beta2]
releases: {v0.1: v1beta2}
infrastructure:
  AcmeCluster: {implements: InfraCluster}
  AcmeMachine:
    implements: InfraMachine
    spec: {size: string!, image: string!}
    webhooks: {validation: true, defaulting: true}
"""
_MANAGER_DESCRIPTION: Final = read_example("acme").replace(
    "infrastructure:\n",
    "manager:\n"
    "  featureGates: {FastBoot: {description: Start servers from snapshots.}}\n"
    "  healthChecks: true\n"
    "infrastructure:\n",
)
_MANAGER: Final = {
    "creates a server at each start if a feature gate is on": edit_controller(
        "acme_machine",
        "    def __init__(self, cloud: SimulatedCloud | None = None) -> None:\n"
        "        self._cloud = cloud or SimulatedCloud()\n",
        "    from .._generated.manager import FAST_BOOT\n\n"
        "    def __init__(self, cloud: SimulatedCloud | None = None) -> None:\n"
        "        self._cloud = cloud or SimulatedCloud()\n"
        "        if self.FAST_BOOT.is_enabled:\n"
        "            self._cloud.create_server(str(uuid.uuid4()), 'x', 'y', None)\n",
    ),
    "restarts the manager in an outage of the cloud": Mistake(
        "src/*/health_checks.py",
        "    def readyz(self) -> None:",
        "        from .cloud import SimulatedCloud\n\n"
        '        SimulatedCloud().find_server("x")\n\n'
        "    def readyz(self) -> None:",
    ),
    "is not alive before its first event": Mistake(
        "src/*/health_checks.py",
        "    def readyz(self) -> None:",
        '        if not hasattr(self, "first_event"):\n'
        '            raise RuntimeError("no event yet")\n\n'
        "    def readyz(self) -> None:",
    ),
}
KITS: Final[Mapping[str, Kit]] = {
    "extension": Kit(read_example("extension"), _EXTENSION),
    "admission": Kit(_ADMISSION_DESCRIPTION, _ADMISSION),
    "manager": Kit(_MANAGER_DESCRIPTION, _MANAGER),
}
