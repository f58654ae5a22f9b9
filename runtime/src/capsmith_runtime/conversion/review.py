"""ConversionReview: the request of the API server, and the response."""

from __future__ import annotations

from typing import Any, Final

from capsmith_runtime.conversion.objects import ConversionError, Converter

API_VERSION: Final = "apiextensions.k8s.io/v1"
KIND: Final = "ConversionReview"


class UnreadableReviewError(ValueError):
    """The body of the request is not a ConversionReview."""


def respond(review: Any, converter: Converter) -> dict[str, Any]:
    """Return a review with the response: all objects in the same order, or a failure.

    Raises UnreadableReviewError for anything but a review of version v1.
    """
    request = review.get("request") if isinstance(review, dict) else None
    if not isinstance(request, dict) or review.get("apiVersion") != API_VERSION:
        raise UnreadableReviewError(f"not a {KIND} of {API_VERSION}")
    uid, objects = request.get("uid"), request.get("objects")
    api_version = request.get("desiredAPIVersion")
    if not (isinstance(uid, str) and isinstance(api_version, str) and isinstance(objects, list)):
        raise UnreadableReviewError("uid, desiredAPIVersion and objects are required")
    response: dict[str, Any] = {"uid": uid}
    try:
        response["convertedObjects"] = [_convert(obj, api_version, converter) for obj in objects]
        response["result"] = {"status": "Success"}
    except ConversionError as error:
        response["result"] = {"status": "Failure", "message": str(error)}
    return {"apiVersion": API_VERSION, "kind": KIND, "response": response}


def _convert(obj: Any, api_version: str, converter: Converter) -> dict[str, Any]:
    if not isinstance(obj, dict):
        raise ConversionError("an object is required")
    return converter.convert(obj, api_version)
