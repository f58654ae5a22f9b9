"""Functions that read the provider's own objects from the API server instead of a cache."""

from __future__ import annotations

from capsmith_runtime.contract import metadata
from capsmith_runtime.kube.client import JSON, KubeClient, ResourceType, Selection


async def is_alive(client: KubeClient, resource: ResourceType, obj: JSON) -> bool:
    """Return whether the object with this UID exists on the API server and is not being deleted.

    This takes a single request: a list by the object's name, for which managers always have
    permission.
    """
    name = metadata.name(obj)
    selection = Selection(namespace=metadata.namespace(obj), fields=f"metadata.name={name}")
    page = await client.list_page(resource, selection)
    return any(
        metadata.uid(found) == metadata.uid(obj) and not metadata.is_deleting(found)
        for found in page.items
    )
