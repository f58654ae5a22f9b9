"""The conversion webhook of a manager, which serves on the leader and on replicas (CRD-15)."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import msgspec

from capsmith_runtime.contract import metadata
from capsmith_runtime.conversion.objects import ConversionError, ConvertedKind, Converter
from capsmith_runtime.errors import ApiError
from capsmith_runtime.kube.client import JSON, KubeClient, ResourceType, Selection
from capsmith_runtime.kube.clock import monotonic
from capsmith_runtime.kube.http_server import Request, RequestHandler, Response, text_response
from capsmith_runtime.kube.log import get_logger
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.reconcile.caches import Caches
from capsmith_runtime.reconcile.context import ControllerContext
from capsmith_runtime.reconcile.groups import ControllerGroup
from capsmith_runtime.webhook.options import WebhookOptions, webhook_options
from capsmith_runtime.webhook.server import WebhookGroup

LABEL: Final = "cluster.x-k8s.io/v1beta1"
EXPIRY_SECONDS: Final = 300.0
_VERSION: Final = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")


class UnknownVersionError(LookupError):
    """Raised if a version is not known yet, and has to be read from the API server."""

    def __init__(self, group: str, kind: str) -> None:
        super().__init__(f"version of {kind} in {group}")
        self.group = group
        self.kind = kind


class VersionBook:
    """API versions by group and kind: of this repository, and of other providers once read.

    Versions of other providers expire: a provider may be installed later, or change its version.
    """

    def __init__(
        self, own: Mapping[tuple[str, str], str], clock: Callable[[], float] = monotonic
    ) -> None:
        self._own = dict(own)
        self._clock = clock
        self._learned: dict[tuple[str, str], tuple[str, float]] = {}

    def __call__(self, group: str, kind: str) -> str:
        """Return the version; raise UnknownVersionError if it has to be read first."""
        if (group, kind) in self._own:
            return self._own[group, kind]
        version, read_at = self._learned.get((group, kind), ("", -EXPIRY_SECONDS))
        if self._clock() - read_at >= EXPIRY_SECONDS:
            raise UnknownVersionError(group, kind)
        return version

    def last(self, group: str, kind: str) -> str:
        """Return the version that was read last, even if it has expired; empty if none was read."""
        return self._learned.get((group, kind), ("", 0.0))[0]

    def add(self, group: str, kind: str, version: str) -> None:
        """Record the version of a kind that was just read; it must not be empty."""
        self._learned[group, kind] = version, self._clock()


def find_newest_version(labels: Mapping[str, Any]) -> str:
    """Return the newest version in the label of a CRD (GEN-03); empty if there is none."""
    matches = map(_VERSION.fullmatch, str(labels.get(LABEL) or "").split("_"))
    newest = max((match for match in matches if match is not None), key=_order, default=None)
    return newest.group() if newest is not None else ""


def _order(version: re.Match[str]) -> tuple[int, int, int]:
    major, stage, minor = version.groups()
    return {None: 2, "beta": 1, "alpha": 0}[stage], int(major), int(minor or 0)


API_VERSION: Final = "apiextensions.k8s.io/v1"
KIND: Final = "ConversionReview"


class ConversionReviewError(ValueError):
    """Raised if the body of a request is not a ConversionReview."""


TURN_SECONDS: Final = 0.005
"""How long conversions may keep the event loop from other work, such as renewing the lease."""


async def respond(review: Any, converter: Converter) -> dict[str, Any]:
    """Return the ConversionReview with the response: all objects in the same order, or a failure.

    Other tasks run between two objects.  Raises ConversionReviewError for any body that is not a
    review of version v1.
    """
    request = review.get("request") if isinstance(review, dict) else None
    if not isinstance(request, dict) or review.get("apiVersion") != API_VERSION:
        raise ConversionReviewError(f"not a {KIND} of {API_VERSION}")
    uid, objects = request.get("uid"), request.get("objects")
    api_version = request.get("desiredAPIVersion")
    if not (isinstance(uid, str) and isinstance(api_version, str) and isinstance(objects, list)):
        raise ConversionReviewError("uid, desiredAPIVersion and objects are required")
    response: dict[str, Any] = {"uid": uid}
    try:
        response["convertedObjects"] = await _convert_all(objects, api_version, converter)
        response["result"] = {"status": "Success"}
    except ConversionError as error:
        response["result"] = {"status": "Failure", "message": str(error)}
    return {"apiVersion": API_VERSION, "kind": KIND, "response": response}


async def _convert_all(
    objects: list[Any], api_version: str, converter: Converter
) -> list[dict[str, Any]]:
    converted = []
    began = time.monotonic()
    for obj in objects:
        converted.append(_convert(obj, api_version, converter))
        if time.monotonic() - began > TURN_SECONDS:
            await asyncio.sleep(0)
            began = time.monotonic()
    return converted


def _convert(obj: Any, api_version: str, converter: Converter) -> dict[str, Any]:
    if not isinstance(obj, dict):
        raise ConversionError("an object is required")
    return converter.convert(obj, api_version)


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
    """Factory of the conversion webhook of a manager, with the settings of the wiring module."""

    kinds: tuple[ConvertedKind, ...]
    versions: Mapping[tuple[str, str], str]
    """The version of contract v1beta1 of each kind of this repository, by group and kind."""

    def __call__(self, caches: Caches, context: ControllerContext) -> ControllerGroup:
        """Return the controllers for one manager."""
        return ConversionWebhookGroup(
            self, caches.client, webhook_options(context.options), caches.metrics
        )

    def converted(self, obj: JSON, api_version: str) -> JSON | None:
        """Return the object in another version; None if this provider does not convert it."""
        try:
            return Converter(self.kinds, VersionBook(self.versions)).convert(obj, api_version)
        except ConversionError:
            return None


class ConversionWebhookGroup(WebhookGroup):
    """Serves conversions from the first certificate until the process ends.

    It does not wait for informers, because they need it to list objects that are stored in another
    version.
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
        """The handler of the only path, which CRDs name."""
        return {PATH: self._review}

    async def _review(self, request: Request) -> Response:
        try:
            review = await self._convert(msgspec.json.decode(request.body))
        except (ConversionReviewError, msgspec.MsgspecError, ValueError, RecursionError) as error:
            return text_response(HTTPStatus.BAD_REQUEST, str(error))
        except ApiError as error:
            return text_response(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        return Response(HTTPStatus.OK, msgspec.json.encode(review))

    async def _convert(self, review: Any) -> dict[str, Any]:
        # Remembered for this review only: the provider of the kind may be installed any moment.
        missing: set[tuple[str, str]] = set()

        def version_of(group: str, kind: str) -> str:
            return "" if (group, kind) in missing else self._versions(group, kind)

        converter = Converter(self._kinds, version_of)
        while True:
            try:
                return await respond(review, converter)
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
            version = find_newest_version(await self._crd_labels(group, kind))
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
            # A list, because the name of a CRD contains the plural, which references do not have.
            page = await self._client.list_page(_CRD, Selection(labels=LABEL), token=token)
            for crd in page.items:
                if _group_kind(crd) == (group, kind):
                    return metadata.labels(crd)
            token = page.token
            if not token:
                return {}


def _group_kind(crd: JSON) -> tuple[str, str]:
    return metadata.text(crd, "spec", "group"), metadata.text(crd, "spec", "names", "kind")
