"""Functions that read objects from the API server instead of a cache."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from capsmith_runtime.contract import metadata
from capsmith_runtime.kube.client import (
    JSON,
    KubeClient,
    NamespacedName,
    ResourceType,
    Selection,
    key_of,
)

_SEPARATOR: Final = re.compile(r"[\\,=]")
"""Characters of field selectors that a backslash has to precede in values."""


async def is_alive(client: KubeClient, resource: ResourceType, obj: JSON) -> bool:
    """Return whether the object with this UID exists on the API server and is not being deleted."""
    found = await find_live(client, resource, key_of(obj), [metadata.uid(obj)])
    return found is not None and not metadata.is_deleting(found)


async def find_live(
    client: KubeClient, resource: ResourceType, key: NamespacedName, uids: Collection[str]
) -> JSON | None:
    """Return an object as :func:`find_by_name` does, or None if none has one of these UIDs."""
    found = await find_by_name(client, resource, key)
    return found if found is not None and metadata.uid(found) in uids else None


async def find_by_name(
    client: KubeClient, resource: ResourceType, key: NamespacedName
) -> JSON | None:
    """Return an object of a kind that the manager watches, or None if it does not exist.

    This takes a single request: a list by the object's name, for which managers have permission
    even if they may not get objects of the kind.
    """
    # Names in owner references may contain any characters.
    name = _SEPARATOR.sub(r"\\\g<0>", key.name)
    selection = Selection(namespace=key.namespace, fields=f"metadata.name={name}")
    page = await client.list_page(resource, selection)
    return next((found for found in page.items if metadata.name(found) == key.name), None)
