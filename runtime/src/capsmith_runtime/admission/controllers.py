"""A manager's admission webhooks, which serve on the leader and on all other replicas.

The handler of a kind reads the review, calls the author's code, and responds.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from itertools import islice
from typing import Any, Final

import msgspec

from capsmith_runtime.admission.api import AdmissionObject, AdmissionWarning, FieldError, Reason
from capsmith_runtime.admission.kinds import AdmittedKind
from capsmith_runtime.admission.reads import MAX_RESULTS, ObjectReads, RefusingReader
from capsmith_runtime.admission.spec_patch import build_spec_patch
from capsmith_runtime.api.serialization import DecodingError, decode
from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.core import is_deleted_for_move
from capsmith_runtime.contract.model import shorten_message
from capsmith_runtime.errors import error_label
from capsmith_runtime.kube.client import JSON
from capsmith_runtime.kube.executor import (
    HandlerExecutor,
    HooksExhaustedError,
    HookTimeoutError,
    TracebackLimiter,
)
from capsmith_runtime.kube.http_server import Request, RequestHandler, Response, text_response
from capsmith_runtime.kube.log import describe_error, get_logger
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.reconcile.caches import Caches
from capsmith_runtime.reconcile.context import ControllerContext
from capsmith_runtime.reconcile.results import describe_unexpected_result
from capsmith_runtime.webhook.json_patch import Operation, canonical_json
from capsmith_runtime.webhook.large_requests import (
    LARGE_BYTES,
    LargeRequests,
    RequestsBusyError,
    compute,
)
from capsmith_runtime.webhook.options import WebhookOptions, webhook_options
from capsmith_runtime.webhook.server import LIMITS, WebhookGroup

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
_OPERATIONS: Final = ("CREATE", "UPDATE", "DELETE")


class AdmissionReviewError(ValueError):
    """Raised if a request's body is not an AdmissionReview for this kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionRequest:
    """The request in an AdmissionReview."""

    uid: str
    operation: str
    """The operation: ``CREATE``, ``UPDATE`` or ``DELETE``."""
    kind: str
    """The kind of the object, which may be a template kind."""
    spec_keys: tuple[str, ...]
    """Keys that lead to the spec in the object."""
    new: JSON
    """The object in the request, or empty for a deletion."""
    old: JSON
    """The stored object, or empty for a creation."""
    is_large: bool = False
    """Whether the request takes so long to handle that threads have to do it."""

    @property
    def name(self) -> str:
        """Return the object's name, or its ``generateName`` prefix if it has no name yet."""
        found = (self.new or self.old).get("metadata") or {}
        return str(found.get("name") or found.get("generateName") or "")

    @property
    def spec_path(self) -> str:
        """Return the spec's path in the object, which is ``spec`` or ``spec.template.spec``."""
        return ".".join(self.spec_keys)

    def spec_of(self, obj: JSON) -> Any:
        """Return the spec of one of the request's objects, or an empty object if it has none."""
        found: Any = obj
        for key in self.spec_keys:
            found = found.get(key) if isinstance(found, dict) else None
        return {} if found is None else found


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The decision on a request: allowed or rejected, with warnings and a patch."""

    status: JSON | None = None
    """The Kubernetes Status that rejects the request, or None if it is accepted."""
    warnings: Sequence[str] = ()
    patch: Sequence[Operation] = ()


ACCEPTED: Final = Verdict()


def read_review(body: bytes, kind: AdmittedKind) -> AdmissionRequest:
    """Return the request in an AdmissionReview v1.

    Raises AdmissionReviewError for any other body.
    """
    try:
        review = msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise AdmissionReviewError(f"not JSON: {error}") from error
    request = review.get("request")
    if not isinstance(request, dict) or review.get("apiVersion") != API_VERSION:
        raise AdmissionReviewError(f"not a {KIND} of {API_VERSION}")
    uid, operation, requested = (request.get(key) for key in ("uid", "operation", "kind"))
    if not (isinstance(uid, str) and operation in _OPERATIONS and isinstance(requested, dict)):
        raise AdmissionReviewError("uid, operation and kind are required")
    name = str(requested.get("kind"))
    spec_keys = kind.spec_keys(name)
    if spec_keys is None or requested.get("group") != kind.group:
        raise AdmissionReviewError(f"{name} is not served here")
    return AdmissionRequest(
        uid=uid,
        operation=str(operation),
        kind=name,
        spec_keys=spec_keys,
        # The API server sends null for the object that an operation does not have.
        new=_object(request, "object", needed=operation != "DELETE"),
        old=_object(request, "oldObject", needed=operation != "CREATE"),
        is_large=len(body) >= LARGE_BYTES,
    )


def write_review(request: AdmissionRequest, verdict: Verdict) -> Response:
    """Return the AdmissionReview with the response to a request, encoded as JSON."""
    response: JSON = {"uid": request.uid, "allowed": verdict.status is None}
    if verdict.status is not None:
        response["status"] = verdict.status
    if verdict.warnings:
        response["warnings"] = [*verdict.warnings]
    if verdict.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(canonical_json(verdict.patch)).decode()
    review = {"apiVersion": API_VERSION, "kind": KIND, "response": response}
    return Response(HTTPStatus.OK, canonical_json(review))


def build_refusal(
    status: HTTPStatus, reason: str, message: str, details: JSON | None = None
) -> JSON:
    """Return the Kubernetes Status that rejects a request."""
    # A response that cannot be encoded would hide the reason: the API server would report a failed
    # webhook instead.
    text = shorten_message(message.encode(errors="replace").decode())
    found: JSON = {"status": "Failure", "code": status.value, "reason": reason, "message": text}
    return found | ({"details": details} if details else {})


def _object(request: JSON, key: str, *, needed: bool) -> JSON:
    found = request.get(key)
    if not needed:
        return {}
    if not isinstance(found, dict) or not isinstance(found.get("metadata"), dict):
        raise AdmissionReviewError(f"{key} is required")
    return found


_WORDS: Final[dict[Reason, str]] = {
    "FieldValueInvalid": "Invalid value",
    "FieldValueRequired": "Required value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueNotSupported": "Unsupported value",
    "FieldValueDuplicate": "Duplicate value",
}


def build_invalid_status(
    kind: AdmittedKind, request: AdmissionRequest, errors: Sequence[FieldError]
) -> JSON:
    """Create a Status 422 with all of the object's errors; ``errors`` must not be empty."""
    causes = [
        {
            "field": _full_path(request.spec_path, error.field),
            "message": _text(f"{_WORDS[error.reason]}: {error.message}"),
            "reason": error.reason,
        }
        for error in errors
    ]
    texts = [f"{cause['field']}: {cause['message']}" for cause in causes]
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    message = f'{request.kind}.{kind.group} "{request.name}" is invalid: {listed}'
    details = {"group": kind.group, "kind": request.kind, "name": request.name, "causes": causes}
    return build_refusal(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", message, details)


def build_decoding_error(request: AdmissionRequest, error: DecodingError) -> FieldError:
    """Create the field error for a spec that cannot be decoded."""
    field = error.path.removeprefix(request.spec_path).removeprefix(".")
    return FieldError(field, str(error).removeprefix(f"{error.path}: "))


def _full_path(spec_path: str, field: str) -> str:
    if not field:
        return spec_path
    return _text(f"{spec_path}{field}" if field.startswith("[") else f"{spec_path}.{field}")


def _text(text: str) -> str:
    # JSON cannot contain lone surrogates, which texts may have if they quote a user.
    return text.encode(errors="replace").decode()


_log = get_logger("admission")

MARGIN_SECONDS: Final = 0.5
"""Seconds of the API server's time limit that are reserved for the network."""


class AdmissionHandler:
    """Handles one kind's requests with its validator and defaulter; never raises."""

    def __init__(
        self, kind: AdmittedKind, reads: ObjectReads, metrics: Metrics, *, threads: int
    ) -> None:
        self._kind = kind
        self._reads = reads
        self._validator = kind.validator() if kind.validator is not None else None
        self._defaulter = kind.defaulter() if kind.defaulter is not None else None
        self._metrics = metrics
        self._tracebacks = TracebackLimiter()
        self._large = LargeRequests(LIMITS.body_bytes)
        # Separate from the reconcilers' executor: calls that hang must not occupy each other's
        # threads.
        self._executor = HandlerExecutor(
            metrics, threads=threads, timeout=kind.timeout_seconds - MARGIN_SECONDS
        )

    @property
    def is_healthy(self) -> bool:
        """Return whether the author's code can be called."""
        return self._executor.is_healthy

    @property
    def routes(self) -> Mapping[str, RequestHandler]:
        """Return this kind's handlers, keyed by URL path."""
        found: dict[str, RequestHandler] = {}
        if self._validator is not None:
            found[self._kind.validate_path] = self.validate
        if self._defaulter is not None:
            found[self._kind.mutate_path] = self.mutate
        return found

    async def validate(self, request: Request) -> Response:
        """Return the validating webhook's response to a request."""
        return await self._respond(request, self._validated, "validation")

    async def mutate(self, request: Request) -> Response:
        """Return the mutating webhook's response to a request."""
        return await self._respond(request, self._defaulted, "defaulting")

    async def _respond(
        self,
        request: Request,
        decide: Callable[[AdmissionRequest], Awaitable[Verdict]],
        purpose: str,
    ) -> Response:
        # After that time, the API server no longer waits for a response.
        seconds = self._kind.timeout_seconds - MARGIN_SECONDS
        try:
            async with self._large.admit(len(request.body), seconds):
                return await self._handle(request, decide, purpose)
        except RequestsBusyError:
            return Response(HTTPStatus.TOO_MANY_REQUESTS, b"", retry_after=1)

    async def _handle(
        self,
        request: Request,
        decide: Callable[[AdmissionRequest], Awaitable[Verdict]],
        purpose: str,
    ) -> Response:
        is_large = len(request.body) >= LARGE_BYTES
        try:
            admission = await compute(is_large, read_review, request.body, self._kind)
        except AdmissionReviewError as error:
            return text_response(HTTPStatus.BAD_REQUEST, str(error))
        controller, began = f"{self._kind.kind}-{purpose}", time.monotonic()
        try:
            verdict = await decide(admission)
            return await compute(is_large, write_review, admission, verdict)
        except (HookTimeoutError, HooksExhaustedError) as error:
            return self._failed(controller, admission, error, "took too long")
        except Exception as error:
            # The text of an unexpected error may hold secrets: only its type is reported.
            return self._failed(controller, admission, error, f"raised {type(error).__name__}")
        finally:
            seconds = time.monotonic() - began
            self._metrics.reconcile_seconds.labels(controller).observe(seconds)

    async def _validated(self, request: AdmissionRequest) -> Verdict:
        if await compute(request.is_large, self._is_accepted, request):
            return ACCEPTED
        if request.operation == "DELETE":
            old = await self._decoded_old(request)
            return ACCEPTED if old is None else await self._results(request, "validate_delete", old)
        try:
            new = await self._decoded(request, request.new)
        except DecodingError as error:
            # Updates that leave the author's fields unchanged do not get here: they are possible
            # even if a field that has become required is missing.
            return self._refused(request, [build_decoding_error(request, error)])
        old = await self._decoded_old(request) if request.operation == "UPDATE" else None
        if old is None:
            return await self._results(request, "validate_create", new)
        return await self._results(request, "validate_update", old, new)

    async def _defaulted(self, request: AdmissionRequest) -> Verdict:
        if request.operation == "DELETE":
            return ACCEPTED
        if await compute(request.is_large, self._is_accepted, request):
            return ACCEPTED
        try:
            obj = await self._decoded(request, request.new)
        except DecodingError:
            # The API server checks the schema afterwards, and reports all errors.
            return ACCEPTED
        assert self._defaulter is not None, "the route exists only with a defaulter"
        spec = await self._executor.call(self._defaulter.default, obj)
        # Not isinstance: a subclass could have fields that are not in the CRD.
        if type(spec) is not self._kind.spec:
            raise TypeError(
                describe_unexpected_result(self._defaulter.default, spec, self._kind.spec)
            )
        values = request.new, request.spec_keys, obj.spec, spec
        return Verdict(patch=await compute(request.is_large, build_spec_patch, *values))

    def _is_accepted(self, request: AdmissionRequest) -> bool:
        """Return whether the request is accepted without calling the author's code.

        It must be possible to remove finalizers from invalid objects, and managers write the
        contract's fields of such objects: existing infrastructure must not be lost (MV-08).
        """
        if request.operation == "DELETE":
            # A move must be able to delete its source objects, whatever the validator decides.
            return is_deleted_for_move(request.old)
        if request.operation == "CREATE":
            return False
        # Otherwise an object that became invalid could never lose its finalizers.
        if metadata.is_deleting(request.new):
            return True
        new, old = (self._own_fields(request, each) for each in (request.new, request.old))
        return bool(new == old)

    def _own_fields(self, request: AdmissionRequest, obj: JSON) -> Any:
        spec, own = request.spec_of(obj), self._kind.own_fields
        # Mutating webhooks are called before the schema is checked, so the spec may be anything.
        if not isinstance(spec, dict):
            return spec
        return {key: value for key, value in spec.items() if key in own}

    async def _results(
        self, request: AdmissionRequest, name: str, *objects: AdmissionObject[Any]
    ) -> Verdict:
        method = getattr(self._validator, name)
        with self._reads.open(request.new or request.old) as reads:
            found = await self._executor.call(reads.connect(method), *objects)
            results = tuple(islice(found, MAX_RESULTS))
        for result in results:
            if not isinstance(result, (FieldError, AdmissionWarning)):
                raise TypeError(
                    describe_unexpected_result(method, result, FieldError, AdmissionWarning)
                )
        warnings = [each.message for each in results if isinstance(each, AdmissionWarning)]
        errors = [each for each in results if isinstance(each, FieldError)]
        return self._refused(request, errors, warnings) if errors else Verdict(warnings=warnings)

    def _refused(
        self, request: AdmissionRequest, errors: list[FieldError], warnings: list[str] | None = None
    ) -> Verdict:
        status = build_invalid_status(self._kind, request, errors)
        _log.info("refused", kind=request.kind, name=request.name, errors=len(errors))
        return Verdict(status=status, warnings=warnings or ())

    async def _decoded(self, request: AdmissionRequest, obj: JSON) -> AdmissionObject[Any]:
        spec: Any = await compute(
            request.is_large, decode, self._kind.spec, request.spec_of(obj), request.spec_path
        )
        return AdmissionObject(
            name=request.name,
            namespace=metadata.namespace(obj),
            labels=metadata.labels(obj),
            annotations=metadata.annotations(obj),
            spec=spec,
            is_template=request.kind != self._kind.kind,
            client=RefusingReader(),
        )

    async def _decoded_old(self, request: AdmissionRequest) -> AdmissionObject[Any] | None:
        """Return the stored object.

        Returns None if it cannot be decoded, since nothing may depend on that.
        """
        try:
            return await self._decoded(request, request.old)
        except DecodingError:
            return None

    def _failed(
        self, controller: str, request: AdmissionRequest, error: Exception, what: str
    ) -> Response:
        self._metrics.reconcile_errors.labels(controller, error_label(error)).inc()
        trace = self._tracebacks.of(error)
        _log.error(
            "webhook failed", controller=controller, error=describe_error(error), exc_info=trace
        )
        message = f"{controller} {what}: see the log of the manager"
        status = build_refusal(HTTPStatus.INTERNAL_SERVER_ERROR, "InternalError", message)
        return write_review(request, Verdict(status=status))


@dataclass(frozen=True, slots=True)
class AdmissionWebhook:
    """Factory for a manager's admission webhooks, with the settings from the wiring module."""

    kinds: tuple[AdmittedKind, ...]

    def __call__(self, caches: Caches, context: ControllerContext) -> AdmissionWebhookGroup:
        """Create the admission webhooks for one manager."""
        return AdmissionWebhookGroup(
            self,
            webhook_options(context.options),
            ObjectReads(caches, context.permissions),
            caches.metrics,
            threads=context.options.hook_threads,
        )


class AdmissionWebhookGroup(WebhookGroup):
    """Serves validation and defaulting for all kinds that have webhooks."""

    def __init__(
        self,
        webhook: AdmissionWebhook,
        options: WebhookOptions,
        reads: ObjectReads,
        metrics: Metrics,
        *,
        threads: int,
    ) -> None:
        super().__init__(options, metrics)
        # Each kind has its own threads: code that hangs must not block the other kinds.
        self._handlers = [
            AdmissionHandler(kind, reads, metrics, threads=threads) for kind in webhook.kinds
        ]

    @property
    def healthy(self) -> bool:
        """Return whether each kind still has a usable thread.

        A thread that has been hanging for minutes is not usable.
        """
        return all(handler.is_healthy for handler in self._handlers)

    @property
    def routes(self) -> Mapping[str, RequestHandler]:
        """Return the handlers for all kinds, keyed by URL path."""
        return {path: route for handler in self._handlers for path, route in handler.routes.items()}
