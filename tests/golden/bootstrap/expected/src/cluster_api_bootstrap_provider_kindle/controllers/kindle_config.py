"""What machines run at their first start."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from typing import Final

from .. import BootstrapConfig, BootstrapConfigReconciler, BootstrapDocument, Waiting
from .._generated import sentinel
from .._generated.api.kindle_config import KindleConfigSpec
from .._generated.cloud_config import cloud_config, write_file

NODE: Final = "kindle-node"
"""A program in the machines' image that makes a Kubernetes node, by what stands in its file."""
FOLDER: Final = f"/etc/{NODE}"
TOKEN_SECONDS: Final = 24 * 3600


class KindleConfigReconciler(BootstrapConfigReconciler[KindleConfigSpec]):
    """Replace the program and its file by what your machines need; the shape stays."""

    def bootstrap_data(
        self, config: BootstrapConfig[KindleConfigSpec]
    ) -> BootstrapDocument | Waiting:
        """A cloud-config; its last act is the sentinel file, and only if all went well."""
        ca = config.certificate("ca")
        if ca.private_key is None:
            return Waiting("NoCertificateKey", "nodes that join are vouched for with the CA's key")
        action = "init" if config.is_first_control_plane else "join"
        settings = {
            "role": "control-plane" if config.is_control_plane else "worker",
            "version": config.version,
            "endpoint": f"{config.endpoint.host}:{config.endpoint.port}",
            "podCIDRs": list(config.cluster.pod_cidrs),
            "serviceCIDRs": list(config.cluster.service_cidrs),
            "taints": [str(taint) for taint in config.node_taints],
            "token": _token(config.name, ca.private_key),
        }
        files = [
            write_file(f"{FOLDER}/node.json", json.dumps(settings, indent=2), "0600"),
            write_file(f"{FOLDER}/pki/ca.crt", ca.certificate),
        ]
        if config.is_control_plane:
            # Whoever has the key of the CA can become anybody in the cluster: no worker gets it.
            files.append(write_file(f"{FOLDER}/pki/ca.key", ca.private_key, "0600"))
        command = sentinel.run_command(f"{NODE} {action} --config {FOLDER}/node.json")
        document = cloud_config({"write_files": files, "runcmd": [command]})
        # Counts for pools only: machines that come later need a token that is still good.
        return BootstrapDocument(document, "cloud-config", refresh_after=TOKEN_SECONDS / 2)


def _token(name: str, key: str) -> str:
    """Proof of a joining node, which every control plane machine can check: it has the key."""
    until = f"{name}.{int(time.time()) + TOKEN_SECONDS}"
    proof = hmac.new(key.encode(), until.encode(), hashlib.sha256).hexdigest()
    return f"{until}.{proof}"
