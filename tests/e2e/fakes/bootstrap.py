"""The helper bootstrap provider: one Secret for each FakeConfig."""

from __future__ import annotations

from pathlib import Path

from capsmith.clusters.lab.simulated.loop import reconcile_each
from capsmith.clusters.processes.kube import JSON, ApiError, KubeClient

from .dialect import CLUSTER_NAME, CONTROL_PLANE, Dialect, is_paused, key, owner, owner_reference
from .manifests import BOOTSTRAP_API


def bootstrap_data(cluster: str, machine: str) -> str:
    """Return a machine's user data, which tests look for in the simulated cloud."""
    return f"#fake-config\ncluster: {cluster}\nmachine: {machine}\n"


def pool_data(cluster: str, pool: str, version: str) -> str:
    """Return the user data of a pool's machines, in which the fake kubelet finds the version."""
    return f"{bootstrap_data(cluster, pool)}version: {version}\n"


class BootstrapProvider:
    """Level-triggered over all FakeConfigs of a management cluster."""

    def __init__(self, client: KubeClient, dialect: Dialect, log: Path) -> None:
        self._client = client
        self._dialect = dialect
        self._log = log
        self._versions: dict[str, str] = {}
        """By uid of a pool's configuration: what its data say."""

    def tick(self) -> None:
        configs = self._client.list(BOOTSTRAP_API, "FakeConfig")
        self._refresh([config for config in configs if owner(config, "MachinePool")])
        waiting = [config for config in configs if not _created(config)]
        if not waiting:
            return
        clusters = {key(each): each for each in self._client.list(self._dialect.core, "Cluster")}
        reconcile_each(self._log, waiting, lambda config: self._reconcile(config, clusters))

    def _reconcile(self, config: JSON, clusters: dict[tuple[str, str], JSON]) -> None:
        metadata = config["metadata"]
        name = metadata.get("labels", {}).get(CLUSTER_NAME, "")
        cluster = clusters.get((metadata["namespace"], name))
        machine = owner(config, "Machine") or owner(config, "MachinePool")
        if cluster is None or machine is None or "deletionTimestamp" in metadata:
            return
        if is_paused(cluster, config) or not self._may_join(config, cluster):
            return
        self._ensure_secret(config, self._data(config, name, machine))
        created = (
            {"initialization": {"dataSecretCreated": True}}
            if self._dialect.contract == "v1beta2"
            else {"ready": True}
        )
        status = {"dataSecretName": metadata["name"], **created}
        self._client.patch(config, {"status": status}, "status")

    def _may_join(self, config: JSON, cluster: JSON) -> bool:
        if not self._dialect.infrastructure_provisioned(cluster):
            return False
        first = CONTROL_PLANE in config["metadata"].get("labels", {})
        return first or self._dialect.control_plane_initialized(cluster)

    def _data(self, config: JSON, cluster: str, machine: JSON) -> str:
        if machine["kind"] != "MachinePool":
            return bootstrap_data(cluster, machine["name"])
        namespace = config["metadata"]["namespace"]
        pool = self._client.get(self._dialect.core, "MachinePool", machine["name"], namespace)
        version = pool["spec"]["template"]["spec"]["version"]
        self._versions[config["metadata"]["uid"]] = version
        return pool_data(cluster, machine["name"], version)

    def _refresh(self, configs: list[JSON]) -> None:
        """The data of pools follow the version that is wanted (MP-19)."""
        for config in configs:
            metadata, reference = config["metadata"], owner(config, "MachinePool")
            known = self._versions.get(metadata["uid"])
            pool = self._client.find(
                self._dialect.core,
                "MachinePool",
                reference["name"] if reference else "",
                metadata["namespace"],
            )
            if known is None or pool is None or reference is None or not _created(config):
                continue
            if pool["spec"]["template"]["spec"]["version"] != known:
                data = self._data(config, metadata["labels"][CLUSTER_NAME], reference)
                secret = self._client.get("v1", "Secret", metadata["name"], metadata["namespace"])
                self._client.patch(secret, {"stringData": {"value": data}})

    def _ensure_secret(self, config: JSON, data: str) -> None:
        metadata = config["metadata"]
        cluster = metadata["labels"][CLUSTER_NAME]
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "cluster.x-k8s.io/secret",
            "metadata": {
                # The name follows from the config alone: after a move its status is gone.
                "name": metadata["name"],
                "namespace": metadata["namespace"],
                "labels": {CLUSTER_NAME: cluster},
                "ownerReferences": [owner_reference(config, controller=True)],
            },
            "stringData": {"value": data, "format": "cloud-config"},
        }
        try:
            self._client.create(secret)
        except ApiError as error:
            if error.status != 409:
                raise


def _created(config: JSON) -> bool:
    status = config.get("status", {})
    flag = status.get("initialization", {}).get("dataSecretCreated") or status.get("ready")
    return bool(flag and status.get("dataSecretName"))
