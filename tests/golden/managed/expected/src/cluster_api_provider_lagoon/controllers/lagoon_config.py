"""What workers run at their first start; the control plane is somebody else's."""

from __future__ import annotations

import json
from typing import Final

from .. import BootstrapConfig, BootstrapConfigReconciler, BootstrapDocument, Waiting
from .._generated import sentinel
from .._generated.api.lagoon_config import LagoonConfigSpec
from .._generated.cloud_config import cloud_config, write_file

NODE: Final = "lagoon-node"
"""A program in the machines' image that makes a Kubernetes node, by what stands in its file."""
FOLDER: Final = f"/etc/{NODE}"


class LagoonConfigReconciler(BootstrapConfigReconciler[LagoonConfigSpec]):
    """Replace the program and its file by what your machines need; the shape stays."""

    def bootstrap_data(
        self, config: BootstrapConfig[LagoonConfigSpec]
    ) -> BootstrapDocument | Waiting:
        """A cloud-config; its last act is the sentinel file, and only if all went well.

        There is no secret in it: the service that runs the control planes knows the machines.
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
        command = sentinel.run_command(f"{NODE} join --config {FOLDER}/node.json")
        document = cloud_config({"write_files": files, "runcmd": [command]})
        return BootstrapDocument(document, "cloud-config")
