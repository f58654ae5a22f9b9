"""A manager's admission webhooks, which serve on the leader and on all other replicas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from capsmith_runtime.admission.handlers import AdmissionHandler
from capsmith_runtime.admission.kinds import AdmittedKind
from capsmith_runtime.kube.http_server import RequestHandler
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.reconcile.caches import Caches
from capsmith_runtime.reconcile.context import ControllerContext
from capsmith_runtime.webhook.options import WebhookOptions, webhook_options
from capsmith_runtime.webhook.server import WebhookGroup


@dataclass(frozen=True, slots=True)
class AdmissionWebhook:
    """Factory for a manager's admission webhooks, with the settings from the wiring module."""

    kinds: tuple[AdmittedKind, ...]

    def __call__(self, caches: Caches, context: ControllerContext) -> AdmissionWebhookGroup:
        """Create the admission webhooks for one manager."""
        return AdmissionWebhookGroup(
            self,
            webhook_options(context.options),
            caches.metrics,
            threads=context.options.hook_threads,
        )


class AdmissionWebhookGroup(WebhookGroup):
    """Serves validation and defaulting for all kinds that have webhooks."""

    def __init__(
        self, webhook: AdmissionWebhook, options: WebhookOptions, metrics: Metrics, *, threads: int
    ) -> None:
        super().__init__(options, metrics)
        # Each kind has its own threads: code that hangs must not block the other kinds.
        self._handlers = [
            AdmissionHandler(kind, metrics, threads=threads) for kind in webhook.kinds
        ]

    @property
    def healthy(self) -> bool:
        """Return whether each kind still has a usable thread: one that has not hung for minutes."""
        return all(handler.is_healthy for handler in self._handlers)

    @property
    def routes(self) -> Mapping[str, RequestHandler]:
        """Return the handlers of all kinds by path."""
        return {path: route for handler in self._handlers for path, route in handler.routes.items()}
