"""Generated webhooks for an API server of the tests."""

from __future__ import annotations

import asyncio
import base64
import importlib
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import cast

import trustme

from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.wait import eventually
from capsmith_runtime.conversion.controllers import ConversionWebhook, ConversionWebhookGroup
from capsmith_runtime.kube.client import KubeClient
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.webhook.options import WebhookOptions
from capsmith_runtime.webhook.server import WebhookGroup
from tests.runtime.webhook.hook_serving import write_certificate


class ServedGroup:
    """A manager's webhooks in their own thread; ``group`` creates them."""

    def __init__(
        self,
        group: Callable[[WebhookOptions], WebhookGroup],
        folder: Path,
        close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`folder` becomes that of the certificates; ``close`` is called at the end."""
        self._close = close
        authority = trustme.CA()
        write_certificate(folder, authority)
        self.authority = base64.b64encode(authority.cert_pem.bytes()).decode()
        self.part = group(WebhookOptions(host="127.0.0.1", port=0, certificates=folder))
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))

    def start(self) -> None:
        self._thread.start()
        eventually(lambda: self.part.ready, timeout=120)

    def turn(self, client: JSON) -> None:
        """Set the address and the authority of this server in a client configuration."""
        path = client.pop("service")["path"]
        client["url"] = f"https://127.0.0.1:{self.part.port}{path}"
        client["caBundle"] = self.authority

    def stop(self) -> None:
        """Stop the webhooks; a second call does nothing."""
        if not self._thread.is_alive():
            return
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        (service,) = self.part.runnables
        serving = asyncio.create_task(service())
        await self._stop.wait()
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        # The API server takes leave of kept connections as well.
        await asyncio.sleep(1)
        if self._close is not None:
            await self._close()


class Webhook(ServedGroup):
    """The generated conversion of the infrastructure's manager."""

    def __init__(self, package: str, folder: Path) -> None:
        """`package` is one that can be imported."""
        kinds = importlib.import_module(f"{package}._generated.conversion.infrastructure")
        versions = importlib.import_module(f"{package}._generated.conversion.versions")
        conversion = ConversionWebhook(kinds.KINDS, versions.VERSIONS)
        # No kind here refers to one of a stranger, so no API server is asked about versions.
        client = cast(KubeClient, None)
        super().__init__(
            lambda options: ConversionWebhookGroup(conversion, client, options, Metrics()), folder
        )

    def turn(self, crd: JSON) -> None:
        """Set the address and the authority of this server in the CRD of a converted kind."""
        client = crd["spec"]["conversion"].get("webhook", {}).get("clientConfig")
        if client is not None:
            super().turn(client)
