"""Conditions under which a controller must not change an object."""

from __future__ import annotations

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.constants import (
    DELETE_FOR_MOVE_ANNOTATION,
    MANAGED_BY_ANNOTATION,
    PAUSED_ANNOTATION,
)
from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.contract.model import Object


def externally_managed(obj: Object) -> bool:
    """Return whether another system manages the object, so that it must not be changed (IC-15)."""
    return MANAGED_BY_ANNOTATION in metadata.annotations(obj)


def deleted_for_move(obj: Object) -> bool:
    """Return whether ``clusterctl move`` deletes this copy; the infrastructure stays (MV-08)."""
    return DELETE_FOR_MOVE_ANNOTATION in metadata.annotations(obj)


def pause_message(obj: Object, kind: str, cluster: Cluster | None) -> str:
    """Return why the object is paused, or an empty text if it is not (SM-01, ST-08)."""
    causes = []
    if cluster is not None and cluster.paused:
        causes.append("Cluster spec.paused is set to true")
    if PAUSED_ANNOTATION in metadata.annotations(obj):
        causes.append(f"{kind} has the {PAUSED_ANNOTATION} annotation")
    return ", ".join(causes)
