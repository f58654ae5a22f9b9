"""Lists of all IPAddresses from the API server, each shared by all concurrent callers."""

from __future__ import annotations

import asyncio

from capsmith_runtime.ipam.address_index import AddressIndex
from capsmith_runtime.kube.client import JSON, KubeClient, ResourceExpired, ResourceType, Selection

_PAGE = 500


class LiveAddressList:
    """Add to the index what the API server has and the cache may not have yet."""

    def __init__(
        self, client: KubeClient, resource: ResourceType, selection: Selection, index: AddressIndex
    ) -> None:
        self._client = client
        self._resource = resource
        self._selection = selection
        self._index = index
        self._lock = asyncio.Lock()
        self._requested = 0
        self._completed = 0

    async def refresh(self) -> None:
        """Return when the index has every IPAddress that existed at the time of the call.

        A list that began before the call may miss the newest addresses, so it does not count; one
        that begins later serves every caller that has arrived by then.
        """
        self._requested += 1
        ticket = self._requested
        async with self._lock:
            if self._completed >= ticket:
                return
            requested = self._requested
            objects, version = await self._list()
            self._index.add_live_list(objects, version)
            self._completed = requested

    async def _list(self) -> tuple[list[JSON], int]:
        objects: list[JSON] = []
        token, limit = "", _PAGE
        while True:
            try:
                page = await self._client.list_page(
                    self._resource, self._selection, limit=limit, token=token
                )
            except ResourceExpired:
                if not token:
                    raise
                # The remaining pages have expired: request the whole list at once.
                objects, token, limit = [], "", 0
                continue
            objects += page.items
            token = page.token
            if not token:
                return objects, int(page.resource_version)
