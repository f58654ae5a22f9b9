"""The conversion webhook of a manager: it serves on the leader and on all others (CRD-15)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from capsmith_runtime.contract import metadata
from capsmith_runtime.conversion.objects import ConversionError, ConvertedKind, Converter
from capsmith_runtime.conversion.review import UnreadableReviewError, respond
from capsmith_runtime.conversion.versions import (
    LABEL,
    UnknownVersionError,
    VersionBook,
    newest_version,
)
from capsmith_runtime.kube.client import JSON, ApiError, KubeClient, ResourceType, Selection
from capsmith_runtime.kube.clock import monotonic
from capsmith_runtime.kube.http_connection import Request, RequestHandler, Response, text_response
from capsmith_runtime.kube.log import get_logger
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.reconcile.base import ControllerContext
from capsmith_runtime.reconcile.caches import Caches
from capsmith_runtime.reconcile.groups import ControllerGroup
from capsmith_runtime.webhook.group import WebhookGroup
from capsmith_runtime.webhook.options import WebhookOptions, webhook_options

_log = get_logger("conversion")

_CRD: Final = ResourceType(
    "apiextensions.k8s.io",
    "v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    namespaced=False,
)
PATH: Final = "/convert"


@dataclass(frozen=True, slots=True)
class ConversionWebhook:
    """The settings from wiring; called to make the server."""

    kinds: tuple[ConvertedKind, ...]
    versions: Mapping[tuple[str, str], str]
    """The version of contract v1beta1 of each kind of this repository, by group and kind."""

    def __call__(self, caches: Caches, context: ControllerContext) -> ControllerGroup:
        """Return the controllers for one manager."""
        return ConversionWebhookGroup(
            self, caches.client, webhook_options(context.options), caches.metrics
        )

    def converted(self, obj: JSON, api_version: str) -> JSON | None:
        """Return the object in another version, or None if its kind is not converted here."""
        try:
            return Converter(self.kinds, VersionBook(self.versions)).convert(obj, api_version)
        except ConversionError:
            return None


class ConversionWebhookGroup(WebhookGroup):
    """Serves conversions from the first certificate until the process ends.

    It does not wait for informers: they need it to list objects that are stored in another version.
    """

    def __init__(
        self,
        webhook: ConversionWebhook,
        client: KubeClient,
        options: WebhookOptions,
        metrics: Metrics,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        super().__init__(options, metrics)
        self._client = client
        self._kinds = webhook.kinds
        self._versions = VersionBook(webhook.versions, clock)

    @property
    def routes(self) -> Mapping[str, RequestHandler]:
        """The only path, which CRDs name."""
        return {PATH: self._review}

    async def _review(self, request: Request) -> Response:
        try:
            review = await self._convert(json.loads(request.body))
        except (UnreadableReviewError, ValueError, RecursionError) as error:
            return text_response(HTTPStatus.BAD_REQUEST, str(error))
        except ApiError as error:
            return text_response(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        return Response(HTTPStatus.OK, json.dumps(review).encode())

    async def _convert(self, review: Any) -> dict[str, Any]:
        # Remembered for this review only: the provider of the kind may be installed any moment.
        missing: set[tuple[str, str]] = set()

        def version_of(group: str, kind: str) -> str:
            return "" if (group, kind) in missing else self._versions(group, kind)

        converter = Converter(self._kinds, version_of)
        while True:
            try:
                return respond(review, converter)
            except UnknownVersionError as unknown:
                version = await self._read_version(unknown.group, unknown.kind)
                if version:
                    self._versions.add(unknown.group, unknown.kind, version)
                else:
                    missing.add((unknown.group, unknown.kind))

    async def _read_version(self, group: str, kind: str) -> str:
        """Read the version from the label of the kind's CRD (GEN-01); empty if there is none.

        Raises ApiError if no version is known from before.
        """
        try:
            version = newest_version(await self._crd_labels(group, kind))
        except ApiError as error:
            last = self._versions.last(group, kind)
            if not last:
                raise
            _log.warning("version cannot be read again", kind=kind, error=str(error))
            return last
        if not version:
            _log.warning("no version for contract v1beta1", group=group, kind=kind)
        return version

    async def _crd_labels(self, group: str, kind: str) -> Mapping[str, str]:
        token = ""
        while True:
            page = await self._client.list_page(_CRD, Selection(labels=LABEL), token=token)
            for crd in page.items:
                if _group_kind(crd) == (group, kind):
                    return metadata.labels(crd)
            token = page.token
            if not token:
                return {}


def _group_kind(crd: JSON) -> tuple[str, str]:
    return metadata.text(crd, "spec", "group"), metadata.text(crd, "spec", "names", "kind")
