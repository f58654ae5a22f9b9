"""Bootstrap data: the programs that machines run at their first start."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
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

from .._generated.api.harbour_config import HarbourConfigSpec

NODE: Final = "harbour-node"
"""Program in the machine image that sets up a Kubernetes node from its settings file."""
FOLDER: Final = f"/etc/{NODE}"
TOKEN_SECONDS: Final = 24 * 3600


class HarbourConfigReconciler(BootstrapConfigReconciler[HarbourConfigSpec]):
    """Replace the program and its settings with your own; keep the signature."""

    def bootstrap_data(
        self, config: BootstrapConfigScope[HarbourConfigSpec]
    ) -> BootstrapDocument | Waiting:
        """Return a cloud-config that creates the sentinel file last, and only on success."""
        ca = config.certificate("ca")
        if ca.private_key is None:
            return Waiting("NoCertificateKey", "join tokens are signed with the key of the CA")
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
            # The key of the CA grants every permission in the cluster: never put it on a worker.
            files.append(write_file(f"{FOLDER}/pki/ca.key", ca.private_key, "0600"))
        command = run_command(f"{NODE} {action} --config {FOLDER}/node.json")
        document = cloud_config({"write_files": files, "runcmd": [command]})
        # Machines that start later, such as those of a pool, need a token that is still valid.
        return BootstrapDocument(document, "cloud-config", refresh_after=TOKEN_SECONDS / 2)

    def refresh_data(
        self, config: BootstrapConfigScope[HarbourConfigSpec]
    ) -> BootstrapDocument | Waiting:
        """Renew the data of a Machine that has not joined when half the token's life has passed.

        Its server may start much later, for example when the infrastructure has no capacity.  If
        you can extend the token instead, return the value in ``config.previous`` again.
        """
        return self.bootstrap_data(config)


def _token(name: str, key: str) -> str:
    """Return a join token that every control plane machine can verify with the key of the CA."""
    claim = f"{name}.{int(time.time()) + TOKEN_SECONDS}"
    signature = hmac.new(key.encode(), claim.encode(), hashlib.sha256).hexdigest()
    return f"{claim}.{signature}"
