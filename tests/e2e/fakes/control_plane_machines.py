"""Create control plane Machines with their infrastructure and bootstrap objects."""

from __future__ import annotations

import hashlib
from itertools import count

from capsmith.clusters.processes.kube import JSON, ApiError, KubeClient

from .dialect import CLUSTER_NAME, CONTROL_PLANE, Dialect, owner_reference
from .manifests import BOOTSTRAP_API, CONTROL_PLANE_GROUP

ConfigKind = tuple[str, str]
"""API version and kind of bootstrap configurations."""
HELPER_CONFIG: ConfigKind = (BOOTSTRAP_API, "FakeConfig")

_TEMPLATE = f"{CONTROL_PLANE_GROUP}/template"
_REVISION_CHARS = 5


def is_outdated(machine: JSON, control_plane: JSON, infrastructure: JSON) -> bool:
    """Return whether a Machine has another template or version than the control plane requires."""
    template = machine["metadata"].get("annotations", {}).get(_TEMPLATE)
    return bool(
        template != infrastructure["name"]
        or machine["spec"].get("version") != control_plane["spec"]["version"]
    )


def name_of_new(control_plane: JSON, infrastructure: JSON, taken: set[str]) -> str:
    """Return the first unused name of this revision, the same after a restart of the helper."""
    text = f"{infrastructure['name']}/{control_plane['spec']['version']}"
    revision = hashlib.sha256(text.encode()).hexdigest()[:_REVISION_CHARS]
    base = f"{control_plane['metadata']['name']}-{revision}"
    return next(name for name in (f"{base}-{i}" for i in count()) if name not in taken)


def spread(zones: list[str], machines: list[JSON], count: int) -> list[str | None]:
    """Return zones for `count` new Machines, each time the one with the fewest Machines."""
    used = [machine["spec"].get("failureDomain") for machine in machines]
    chosen: list[str | None] = []
    for _ in range(count):
        taken = [*used, *chosen]
        chosen.append(min(zones, key=taken.count, default=None))
    return chosen


class MachineFactory:
    """Creates the objects of a control plane machine; existing objects are kept."""

    def __init__(
        self, client: KubeClient, dialect: Dialect, config: ConfigKind = HELPER_CONFIG
    ) -> None:
        self._client = client
        self._dialect = dialect
        self._config = config

    def create(
        self, name: str, control_plane: JSON, cluster: JSON, reference: JSON, zone: str | None
    ) -> None:
        version, kind, template_name = self._dialect.resolve(self._client, reference)
        namespace = cluster["metadata"]["namespace"]
        template = self._client.get(version, kind, template_name, namespace)
        metadata = self._metadata(name, control_plane, cluster)
        infrastructure = self._ensure(_clone(template, metadata))
        api_version, config = self._config
        bootstrap = self._ensure(
            {"apiVersion": api_version, "kind": config, "metadata": metadata, "spec": {}}
        )
        self._ensure(
            {
                "apiVersion": self._dialect.core,
                "kind": "Machine",
                "metadata": {
                    **metadata,
                    "annotations": {_TEMPLATE: template_name},
                    "ownerReferences": [owner_reference(control_plane, controller=True)],
                },
                "spec": {
                    "clusterName": cluster["metadata"]["name"],
                    "version": control_plane["spec"]["version"],
                    "bootstrap": {"configRef": self._dialect.reference(bootstrap)},
                    "infrastructureRef": self._dialect.reference(infrastructure),
                    **({"failureDomain": zone} if zone else {}),
                },
            }
        )

    def _metadata(self, name: str, control_plane: JSON, cluster: JSON) -> JSON:
        template = control_plane["spec"]["machineTemplate"].get("metadata", {})
        return {
            "name": name,
            "namespace": cluster["metadata"]["namespace"],
            "labels": {
                **template.get("labels", {}),
                CLUSTER_NAME: cluster["metadata"]["name"],
                CONTROL_PLANE: "",
                "cluster.x-k8s.io/control-plane-name": control_plane["metadata"]["name"],
            },
            "ownerReferences": [owner_reference(control_plane)],
        }

    def _ensure(self, obj: JSON) -> JSON:
        try:
            return self._client.create(obj)
        except ApiError as error:
            if error.status != 409:
                raise
        return obj


def _clone(template: JSON, metadata: JSON) -> JSON:
    inner = template["spec"]["template"]
    kind = template["kind"].removesuffix("Template")
    group = template["apiVersion"].partition("/")[0]
    extra = inner.get("metadata", {})
    return {
        "apiVersion": template["apiVersion"],
        "kind": kind,
        "metadata": {
            **metadata,
            "labels": {**extra.get("labels", {}), **metadata["labels"]},
            "annotations": {
                **extra.get("annotations", {}),
                "cluster.x-k8s.io/cloned-from-name": template["metadata"]["name"],
                "cluster.x-k8s.io/cloned-from-groupkind": f"{template['kind']}.{group}",
            },
        },
        "spec": inner.get("spec", {}),
    }
