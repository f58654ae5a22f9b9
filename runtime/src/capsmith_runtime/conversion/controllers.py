"""A manager's conversion webhook, which serves on the leader and on replicas (CRD-15)."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import msgspec

from capsmith_runtime.contract import metadata
from capsmith_runtime.conversion.objects import (
    ConversionError,
    ConvertedKind,
    Converter,
    UnknownVersionError,
)
from capsmith_runtime.conversion.shape import Versions
from capsmith_runtime.errors import ApiError, error_label
from capsmith_runtime.kube.client import JSON, KubeClient, ResourceType, Selection
from capsmith_runtime.kube.clock import monotonic
from capsmith_runtime.kube.deep_json import DeepContainers
from capsmith_runtime.kube.executor import TracebackLimiter
from capsmith_runtime.kube.http_server import Request, RequestHandler, Response, text_response
from capsmith_runtime.kube.log import describe_error, get_logger
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.reconcile.caches import Caches
from capsmith_runtime.reconcile.context import ControllerContext
from capsmith_runtime.reconcile.groups import ControllerGroup
from capsmith_runtime.webhook.options import WebhookOptions, webhook_options
from capsmith_runtime.webhook.server import WebhookGroup

LABEL: Final = "cluster.x-k8s.io/v1beta1"
EXPIRY_SECONDS: Final = 300.0
ABSENCE_SECONDS: Final = 5.0
"""Minimum seconds between two look-ups of a missing kind's CRD, which users can cause."""
_VERSION: Final = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")


class VersionBook:
    """API versions of all kinds that this provider converts or refers to, keyed by group and kind.

    Versions of other providers' kinds are read when needed and expire: a provider may be installed
    later, or change its version. If a kind has no version, that is remembered for a shorter time.
    """

    def __init__(
        self, own: Mapping[tuple[str, str], str], clock: Callable[[], float] = monotonic
    ) -> None:
        self._own = dict(own)
        self._clock = clock
        # One tuple, since threads look versions up.  Expired from the beginning, so that the first
        # lookup reads the versions.
        self._read: tuple[Mapping[tuple[str, str], str], float] = ({}, -EXPIRY_SECONDS)

    def __call__(self, group: str, kind: str) -> str:
        """Return a kind's version.

        Raises UnknownVersionError if the version must be read first.
        """
        if (group, kind) in self._own:
            return self._own[group, kind]
        versions, read_at = self._read
        version = versions.get((group, kind), "")
        if self._clock() - read_at >= (EXPIRY_SECONDS if version else ABSENCE_SECONDS):
            raise UnknownVersionError(group, kind)
        return version

    def last(self, group: str, kind: str) -> str:
        """Return a kind's last known version, even if it has expired, or an empty string."""
        return self._own.get((group, kind)) or self._read[0].get((group, kind), "")

    def replace(self, versions: Mapping[tuple[str, str], str]) -> None:
        """Replace the versions of all other providers' kinds, which have just been read."""
        self._read = versions, self._clock()


def find_newest_version(labels: Mapping[str, Any]) -> str:
    """Return the newest version in a CRD's labels (GEN-03), or an empty string if there is none."""
    matches = map(_VERSION.fullmatch, str(labels.get(LABEL) or "").split("_"))
    newest = max((match for match in matches if match is not None), key=_order, default=None)
    return newest.group() if newest is not None else ""


def _order(version: re.Match[str]) -> tuple[int, int, int]:
    major, stage, minor = version.groups()
    # As in Kubernetes, a stable version is newer than each beta version, which is newer than each
    # alpha version.
    return {None: 2, "beta": 1, "alpha": 0}[stage], int(major), int(minor or 0)


API_VERSION: Final = "apiextensions.k8s.io/v1"
KIND: Final = "ConversionReview"


class ConversionReviewError(ValueError):
    """Raised if a request's body is not a ConversionReview."""


class ConversionBusyError(Exception):
    """Raised if other large requests take so long that the client must send this one again."""


TURN_SECONDS: Final = 0.005
"""Maximum seconds for which conversions block the event loop, which also renews the lease."""
THREAD_BYTES: Final = 64 * 1024
"""Size in bytes from which the body of a request is read and converted in a thread.

A single large object may take seconds, during which the event loop must go on.
"""
QUEUE_SECONDS: Final = 20.0
"""Maximum seconds to wait for that thread: after 30, the API server has given the request up."""
HANG_SECONDS: Final = 120.0
"""Seconds after which a conversion in that thread counts as one that never ends."""


@dataclass(frozen=True, slots=True)
class _ReviewRequest:
    """What a ConversionReview requests."""

    uid: str
    api_version: str
    objects: list[Any]


def _parse_review(review: Any) -> _ReviewRequest:
    """Raise ConversionReviewError if the body is not a ConversionReview v1."""
    request = review.get("request") if isinstance(review, dict) else None
    if not isinstance(request, dict) or review.get("apiVersion") != API_VERSION:
        raise ConversionReviewError(f"not a {KIND} of {API_VERSION}")
    uid, objects = request.get("uid"), request.get("objects")
    api_version = request.get("desiredAPIVersion")
    if not (isinstance(uid, str) and isinstance(api_version, str) and isinstance(objects, list)):
        raise ConversionReviewError("uid, desiredAPIVersion and objects are required")
    return _ReviewRequest(uid, api_version, objects)


def _make_review(uid: str, converted: list[dict[str, Any]] | ConversionError) -> dict[str, Any]:
    response: dict[str, Any] = {"uid": uid}
    if isinstance(converted, ConversionError):
        response["result"] = {"status": "Failure", "message": str(converted)}
    else:
        response |= {"convertedObjects": converted, "result": {"status": "Success"}}
    return {"apiVersion": API_VERSION, "kind": KIND, "response": response}


async def respond(review: Any, converter: Converter) -> dict[str, Any]:
    """Return the ConversionReview with the response: the objects in the same order, or a failure.

    Other tasks can run between two objects. Raises ConversionReviewError if the body is not a
    ConversionReview v1.
    """
    request = _parse_review(review)
    try:
        return _make_review(request.uid, await _convert_all(request, converter))
    except ConversionError as error:
        return _make_review(request.uid, error)


def respond_to_body(body: bytes, converter: Converter) -> bytes:
    """Return the response to a request's body; like `respond`, but for use in a thread."""
    request = _parse_review(msgspec.json.decode(body))
    try:
        converted = [_convert(obj, request.api_version, converter) for obj in request.objects]
        review = _make_review(request.uid, converted)
    except ConversionError as error:
        review = _make_review(request.uid, error)
    return msgspec.json.encode(review)


async def _convert_all(request: _ReviewRequest, converter: Converter) -> list[dict[str, Any]]:
    converted = []
    began = time.monotonic()
    for obj in request.objects:
        converted.append(_convert(obj, request.api_version, converter))
        # Time is measured rather than objects counted, because authors' functions differ in cost.
        if time.monotonic() - began > TURN_SECONDS:
            await asyncio.sleep(0)
            began = time.monotonic()
    return converted


def _convert(obj: Any, api_version: str, converter: Converter) -> dict[str, Any]:
    if not isinstance(obj, dict) or not isinstance(obj.get("metadata") or {}, dict):
        raise ConversionError("an object is required")
    try:
        return converter.convert(obj, api_version)
    except (UnknownVersionError, ApiError, RecursionError):
        raise
    except Exception as error:
        # A failure must be a response: without one, the API server repeats the request for a
        # minute.
        cause = str(error) if isinstance(error, ConversionError) else describe_error(error)
        raise ConversionError(": ".join(filter(None, (_describe(obj), cause)))) from error


def _describe(obj: JSON) -> str:
    """Return an object's namespace and name, as far as it has them.

    The API server converts a new object before it generates the name.
    """
    found = obj.get("metadata") or {}
    name = found.get("name") or found.get("generateName")
    return "/".join(str(part) for part in (found.get("namespace"), name) if part)


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
    """Factory for a manager's conversion webhook, with the settings from the wiring module."""

    kinds: tuple[ConvertedKind, ...]
    versions: Mapping[tuple[str, str], str]
    """Each repository kind's API version for contract v1beta1, keyed by group and kind."""

    def __call__(self, caches: Caches, context: ControllerContext) -> ControllerGroup:
        """Create the conversion webhook for one manager."""
        return ConversionWebhookGroup(
            self, caches.client, webhook_options(context.options), caches.metrics
        )

    def converted(self, obj: JSON, api_version: str) -> JSON | None:
        """Return the object in another version, or None if this provider does not convert it."""
        try:
            # Offline, only the versions of this repository are known, which suffices for its own
            # kinds.
            return Converter(self.kinds, VersionBook(self.versions)).convert(obj, api_version)
        except ConversionError:
            return None


class ConversionWebhookGroup(WebhookGroup):
    """Serves conversions from the first certificate until the process exits.

    It does not wait for the informers, because they need these conversions to list objects that are
    stored in another version.
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
        self._metrics = metrics
        self._versions = VersionBook(webhook.versions, clock)
        self._tracebacks = TracebackLimiter(clock)
        self._reading = asyncio.Lock()
        self._converting = asyncio.Lock()
        self._clock = clock
        self._began: float | None = None
        """When the conversion in the thread began, or None if there is none."""

    @property
    def healthy(self) -> bool:
        """Return False if a conversion has been running for so long that it must be hanging."""
        return self._began is None or self._clock() - self._began < HANG_SECONDS

    @property
    def routes(self) -> Mapping[str, RequestHandler]:
        """Return the handler, keyed by the only URL path, which all CRDs name."""
        return {PATH: self._review}

    async def _review(self, request: Request) -> Response:
        try:
            review = await self._convert(request.body)
        except (ConversionReviewError, msgspec.MsgspecError, ValueError, RecursionError) as error:
            return text_response(HTTPStatus.BAD_REQUEST, str(error))
        except (ApiError, ConversionBusyError) as error:
            # Not a failed review: the objects may be convertible as soon as the versions can be
            # read, or others have been converted.
            return text_response(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        return Response(HTTPStatus.OK, review)

    async def _convert(self, body: bytes) -> bytes:
        """Return the body of the response to a request with ``body``."""
        try:
            return await self._respond(body, self._versions)
        except UnknownVersionError as unknown:
            error = await self._read_versions(unknown)

        def version_of(group: str, kind: str) -> str:
            version = self._versions.last(group, kind)
            if not version and error is not None:
                raise error
            return version

        # Convert the whole review again: a conversion has no side effects, and the list that was
        # just read has the versions of all kinds.
        return await self._respond(body, version_of)

    async def _respond(self, body: bytes, versions: Versions) -> bytes:
        try:
            return await self._respond_shallow(body, versions)
        except RecursionError:
            # A single object must not keep all others from being listed, and must lose nothing.
            containers = DeepContainers()
            shallow = await asyncio.to_thread(containers.take_out, body)
            response = await self._respond_shallow(shallow, versions)
            return await asyncio.to_thread(containers.put_back, response)

    async def _respond_shallow(self, body: bytes, versions: Versions) -> bytes:
        converter = self._converter(versions)
        if len(body) < THREAD_BYTES:
            return msgspec.json.encode(await respond(msgspec.json.decode(body), converter))
        # One at a time: decoded objects take up to 30 times the memory of their JSON text.
        try:
            async with asyncio.timeout(QUEUE_SECONDS):
                await self._converting.acquire()
        except TimeoutError:
            raise ConversionBusyError("other large objects are being converted") from None
        # Without a timeout, which would admit another conversion while this thread still runs.
        try:
            self._began = self._clock()
            return await asyncio.to_thread(respond_to_body, body, converter)
        finally:
            self._began = None
            self._converting.release()

    def _converter(self, versions: Versions) -> Converter:
        return Converter(self._kinds, versions, self._report)

    def _report(self, error: Exception) -> None:
        """Count a conversion that continues without some values; log it once a minute."""
        self._metrics.reconcile_errors.labels("conversion", error_label(error)).inc()
        trace = self._tracebacks.of(error)
        if trace is not None:
            _log.error("converted in part", error=describe_error(error), exc_info=trace)

    async def _read_versions(self, unknown: UnknownVersionError) -> ApiError | None:
        """Read the versions of all kinds from the labels of CRDs (GEN-01).

        A single listing serves all objects of a review, whatever they refer to, and all reviews
        that wait for it. Returns the error if versions cannot be read, in which case the previous
        ones stay in use.
        """
        # Reviews arrive in bursts, and each of them would otherwise list all CRDs.
        async with self._reading:
            with suppress(UnknownVersionError):
                self._versions(unknown.group, unknown.kind)
                return None  # another review has read them
            try:
                self._versions.replace(await self._list_versions())
            except ApiError as error:
                _log.warning("versions cannot be read", kind=unknown.kind, error=str(error))
                return error
        if not self._versions.last(unknown.group, unknown.kind):
            kind, group = unknown.kind, unknown.group
            _log.warning("no version for contract v1beta1", group=group, kind=kind)
        return None

    async def _list_versions(self) -> dict[tuple[str, str], str]:
        versions: dict[tuple[str, str], str] = {}
        token = ""
        while True:
            # A list, because the name of a CRD contains the plural, which references do not have.
            page = await self._client.list_page(_CRD, Selection(labels=LABEL), token=token)
            for crd in page.items:
                version = find_newest_version(metadata.labels(crd))
                if version:
                    versions[_group_kind(crd)] = version
            token = page.token
            if not token:
                return versions


def _group_kind(crd: JSON) -> tuple[str, str]:
    return metadata.text(crd, "spec", "group"), metadata.text(crd, "spec", "names", "kind")
