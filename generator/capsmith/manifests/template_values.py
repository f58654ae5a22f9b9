"""The variables of a cluster template that a user has to set; knows no disk and no clusterctl."""

from __future__ import annotations

from collections.abc import Mapping

from capsmith.manifests.variables import find_required, scan

_SET_BY_CLUSTERCTL = frozenset(
    (
        "CLUSTER_NAME",
        "NAMESPACE",
        "KUBERNETES_VERSION",
        "CONTROL_PLANE_MACHINE_COUNT",
        "WORKER_MACHINE_COUNT",
    )
)
"""Variables that `clusterctl generate cluster` sets from its arguments."""


def find_missing_values(template: str, values: Mapping[str, str]) -> list[str]:
    """Return the sorted names of variables that have neither a default nor a value in ``values``.

    An empty value counts as none, as for clusterctl.
    """
    required = find_required(scan(template)) - _SET_BY_CLUSTERCTL
    return sorted(name for name in required if not values.get(name))
