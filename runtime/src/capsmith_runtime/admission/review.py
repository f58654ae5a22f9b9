"""AdmissionReview: the request of the API server, and the response."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import msgspec

from capsmith_runtime.admission.kinds import AdmittedKind
from capsmith_runtime.contract.model import shorten_message
from capsmith_runtime.kube.client import JSON
from capsmith_runtime.kube.http_server import Response
from capsmith_runtime.webhook.json_patch import Operation, canonical_json

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
_OPERATIONS: Final = ("CREATE", "UPDATE", "DELETE")


class UnreadableReviewError(ValueError):
    """The body of the request is not an AdmissionReview of this kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionRequest:
    """The request in a review."""

    uid: str
    operation: str
    """``CREATE``, ``UPDATE`` or ``DELETE``."""
    kind: str
    """The kind of the object, or that of its template."""
    spec_keys: tuple[str, ...]
    """Where the object has the spec."""
    new: JSON
    """The object; empty for a deletion."""
    old: JSON
    """The stored object; empty for a creation."""

    @property
    def name(self) -> str:
        """The name of the object, or the prefix from which it is generated."""
        found = (self.new or self.old).get("metadata") or {}
        return str(found.get("name") or found.get("generateName") or "")

    @property
    def spec_path(self) -> str:
        """The path of the spec: ``spec`` or ``spec.template.spec``."""
        return ".".join(self.spec_keys)

    def spec_of(self, obj: JSON) -> Any:
        """Return the spec in an object of this request; empty if it has none."""
        found: Any = obj
        for key in self.spec_keys:
            found = found.get(key) if isinstance(found, dict) else None
        return {} if found is None else found


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The decision about a request."""

    status: JSON | None = None
    """A Status of Kubernetes that refuses the request; None accepts it."""
    warnings: Sequence[str] = ()
    patch: Sequence[Operation] = ()


ACCEPTED: Final = Verdict()


def read_review(body: bytes, kind: AdmittedKind) -> AdmissionRequest:
    """Return the request of a review of version v1; raise UnreadableReviewError."""
    try:
        review = msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise UnreadableReviewError(f"not JSON: {error}") from error
    request = review.get("request")
    if not isinstance(request, dict) or review.get("apiVersion") != API_VERSION:
        raise UnreadableReviewError(f"not a {KIND} of {API_VERSION}")
    uid, operation, requested = (request.get(key) for key in ("uid", "operation", "kind"))
    if not (isinstance(uid, str) and operation in _OPERATIONS and isinstance(requested, dict)):
        raise UnreadableReviewError("uid, operation and kind are required")
    name = str(requested.get("kind"))
    spec_keys = kind.spec_keys(name)
    if spec_keys is None or requested.get("group") != kind.group:
        raise UnreadableReviewError(f"{name} is not served here")
    return AdmissionRequest(
        uid=uid,
        operation=str(operation),
        kind=name,
        spec_keys=spec_keys,
        new=_object(request, "object", needed=operation != "DELETE"),
        old=_object(request, "oldObject", needed=operation != "CREATE"),
    )


def write_review(request: AdmissionRequest, verdict: Verdict) -> Response:
    """Return the response to a request."""
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


def refusal(status: HTTPStatus, reason: str, message: str, details: JSON | None = None) -> JSON:
    """Return the Status of Kubernetes for a request that is refused."""
    text = shorten_message(message.encode(errors="replace").decode())
    found: JSON = {"status": "Failure", "code": status.value, "reason": reason, "message": text}
    return found | ({"details": details} if details else {})


def _object(request: JSON, key: str, *, needed: bool) -> JSON:
    found = request.get(key)
    if not needed:
        return {}
    if not isinstance(found, dict) or not isinstance(found.get("metadata"), dict):
        raise UnreadableReviewError(f"{key} is required")
    return found
