"""Process all objects of a kind: page by page, with limited concurrency and rate."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

from capsmith_runtime.contract import metadata
from capsmith_runtime.kube.client import (
    JSON,
    ApiError,
    KubeClient,
    ResourceExpired,
    ResourceType,
    Selection,
    key_of,
)
from capsmith_runtime.kube.log import get_logger

_log = get_logger("migration")

PAGE_SIZE: Final = 250
MAX_CONCURRENT_WRITES: Final = 4
PAUSE_SECONDS: Final = 0.08
"""Pause after each write, within its slot: each write is an event for controllers."""
MAX_FAILURES: Final = 20
"""Failures that end a walk: so many have a common cause."""

ProcessObject = Callable[[JSON], Awaitable[None]]
"""Processes one object, given its metadata only; may raise ApiError."""


class WriteLimiter:
    """Limits writes of all kinds together, to leave the API server to the controllers."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(MAX_CONCURRENT_WRITES)

    @asynccontextmanager
    async def slot(self) -> AsyncGenerator[None, None]:
        """Wait for a slot, and hold it for one write and the pause."""
        async with self._slots:
            yield
            await asyncio.sleep(PAUSE_SECONDS)


class Walk:
    """Processes each object of a kind once; another run skips those that were processed."""

    def __init__(self, client: KubeClient, process: ProcessObject) -> None:
        self._client = client
        self._process = process
        self._processed: set[str] = set()
        self._failures: list[ApiError] = []

    @property
    def processed(self) -> int:
        """The number of objects that have been processed."""
        return len(self._processed)

    async def run(self, resource: ResourceType) -> None:
        """Process all pages.

        Raise ApiError if a list fails, or else, at the end, the first error of an object.
        """
        self._failures, token, before = [], "", self.processed
        while True:
            try:
                page = await self._client.list_page(
                    resource, Selection(metadata_only=True), limit=PAGE_SIZE, token=token
                )
            except ResourceExpired:
                if not token or self.processed == before:
                    raise
                # The continue token has expired: list again, and skip what has been processed.
                token, before = "", self.processed
                continue
            async with asyncio.TaskGroup() as group:
                for obj in page.items:
                    group.create_task(self._process_once(resource.kind, obj))
            if not page.token or self._is_stopped:
                break
            token = page.token
            _log.info("a page is done", kind=resource.kind, objects=self.processed)
        if self._failures:
            raise self._failures[0]

    @property
    def _is_stopped(self) -> bool:
        # A server that sends Retry-After is overloaded.
        too_many = len(self._failures) >= MAX_FAILURES
        return too_many or any(error.retry_after for error in self._failures)

    async def _process_once(self, kind: str, obj: JSON) -> None:
        if metadata.uid(obj) in self._processed or self._is_stopped:
            return
        try:
            await self._process(obj)
        except ApiError as error:
            if not self._failures:
                _log.warning("object is left", kind=kind, object=str(key_of(obj)), error=str(error))
            self._failures.append(error)
        else:
            self._processed.add(metadata.uid(obj))
