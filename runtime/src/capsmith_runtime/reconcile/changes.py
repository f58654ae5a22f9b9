"""Log what a reconcile changed, as its object shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capsmith_runtime.contract import conditions, constants, metadata
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.kube.log import get_logger
from capsmith_runtime.reconcile.kinds import Kind


def log_changes(kind: Kind[Any], key: NamespacedName, before: JSON, after: JSON) -> None:
    """Log that an object is new, waits for another reason, is provisioned, or is deleted."""
    logger = get_logger("reconcile", kind=kind.resource.kind, object=str(key))
    had, has = (kind.finalizer in metadata.finalizers(obj) for obj in (before, after))
    if has and not had:
        logger.info("new object", external_id=kind.external_id(after))
    old, new = _ready_of(before), _ready_of(after)
    if had and not has:
        logger.info("deleted")
    elif new.get("status") == "True" and old.get("status") != "True":
        logger.info("provisioned")
    elif new.get("status") == "False" and old.get("reason") != new.get("reason"):
        logger.info("waiting", reason=new.get("reason"), message=new.get("message"))


def _ready_of(obj: JSON) -> Mapping[str, Any]:
    """Return the Ready condition; empty if there is none."""
    shown = metadata.items(obj, "status", "conditions")
    return conditions.find(shown, constants.READY_CONDITION) or {}
