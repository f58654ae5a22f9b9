"""Why an object is not ready: its condition, and the Secrets that an error may be about."""

from __future__ import annotations

from collections.abc import Iterator

from capsmith.clusters.conditions import get_mapping
from capsmith.clusters.lab.page.model.store import (
    ObjectKey,
    ObjectStore,
    StoredObject,
    list_owners,
    list_references,
)
from capsmith.clusters.lab.page.model.summary import FAILED
from capsmith.clusters.lab.secret_names import Holder, find_secret_names


def describe_reason(store: ObjectStore, found: StoredObject) -> str:
    """Return what an object waits for or what has failed.

    The text of an error also names the Secrets that the error may be about.
    """
    summary = found.summary
    if summary.tone != FAILED:
        return summary.waiting
    secrets = find_secret_names(summary.waiting, _find_holders(store, found))
    return f"{summary.waiting}{secrets}"


def _find_holders(store: ObjectStore, found: StoredObject) -> Iterator[Holder]:
    """Yield the objects that may refer to the Secret an error is about, nearest first."""
    is_about_bootstrap = found.summary.waiting.startswith("BootstrapConfigReady")
    for each in (found, *_list_related(store, found, is_about_bootstrap=is_about_bootstrap)):
        yield Holder(each.data)
        identity = get_mapping(get_mapping(each.data.get("spec")).get("identityRef"))
        kind, name = str(identity.get("kind") or ""), str(identity.get("name") or "")
        for namespace in (each.key.namespace, ""):
            holder = store.find(ObjectKey(each.key.group, kind, namespace, name).id)
            if holder is not None:
                yield Holder(holder.data, is_identity=True)


def _list_related(
    store: ObjectStore, found: StoredObject, *, is_about_bootstrap: bool
) -> Iterator[StoredObject]:
    """Yield the object of a provider behind a core object, and the cluster's infrastructure."""
    for key, role in list_references(found):
        related = store.find(key.id)
        if related is not None and (role == "Bootstrap") == is_about_bootstrap:
            yield related
    cluster = _find_cluster(store, found)
    if cluster is None or is_about_bootstrap or found.key.group.startswith("bootstrap."):
        return
    for key, role in list_references(cluster):
        related = store.find(key.id)
        if related is not None and role == "Infrastructure":
            yield related


def _find_cluster(store: ObjectStore, found: StoredObject) -> StoredObject | None:
    """Return the Cluster that an object or an owner of it is labelled with."""
    owners = (store.find_uid(str(each.get("uid") or "")) for each in list_owners(found.data))
    for each in (found, *filter(None, owners)):
        cluster = store.find_cluster(each)
        if cluster is not None:
            return cluster
    return None
