"""Bootstrap data of workers; another provider runs the control plane."""

from __future__ import annotations

import json
from typing import Final

from capsmith_runtime.bootstrap import (
    BootstrapConfigReconciler,
    BootstrapConfigScope,
    BootstrapDocument,
    Waiting,
    cloud_config,
    run_command,
    write_file,
)

from .._generated.api.lagoon_config import LagoonConfigSpec

NODE: Final = "lagoon-node"
"""Program in the machine image that sets up a Kubernetes node from its settings file."""
FOLDER: Final = f"/etc/{NODE}"


class LagoonConfigReconciler(BootstrapConfigReconciler[LagoonConfigSpec]):
    """Replace the program and its settings with your own; keep the signature."""

    def bootstrap_data(
        self, config: BootstrapConfigScope[LagoonConfigSpec]
    ) -> BootstrapDocument | Waiting:
        """Return a cloud-config that creates the sentinel file last, and only on success.

        It contains no secret: the service that runs the control planes knows the machines.
        """
        settings = {
            "version": config.version,
            "cluster": config.cluster.name,
            "endpoint": f"{config.endpoint.host}:{config.endpoint.port}",
            "podCIDRs": list(config.cluster.pod_cidrs),
            "serviceCIDRs": list(config.cluster.service_cidrs),
            "taints": [str(taint) for taint in config.node_taints],
        }
        files = [write_file(f"{FOLDER}/node.json", json.dumps(settings, indent=2), "0600")]
        command = run_command(f"{NODE} join --config {FOLDER}/node.json")
        document = cloud_config({"write_files": files, "runcmd": [command]})
        return BootstrapDocument(document, "cloud-config")
