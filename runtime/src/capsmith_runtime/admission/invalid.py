"""Errors of an author's validator, as Kubernetes reports invalid objects."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Final

from capsmith_runtime.admission.api import FieldError, Reason
from capsmith_runtime.admission.kinds import AdmittedKind
from capsmith_runtime.admission.review import AdmissionRequest, refusal
from capsmith_runtime.api.decoding import DecodingError
from capsmith_runtime.kube.client import JSON

_WORDS: Final[dict[Reason, str]] = {
    "FieldValueInvalid": "Invalid value",
    "FieldValueRequired": "Required value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueNotSupported": "Unsupported value",
    "FieldValueDuplicate": "Duplicate value",
}


def invalid_status(
    kind: AdmittedKind, request: AdmissionRequest, errors: Sequence[FieldError]
) -> JSON:
    """Return a Status 422 with all errors; there must be at least one."""
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
    return refusal(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", message, details)


def decoding_error(request: AdmissionRequest, error: DecodingError) -> FieldError:
    """Return the error of a spec that cannot be read."""
    field = error.path.removeprefix(request.spec_path).removeprefix(".")
    return FieldError(field, str(error).removeprefix(f"{error.path}: "))


def _full_path(spec_path: str, field: str) -> str:
    if not field:
        return spec_path
    return _text(f"{spec_path}{field}" if field.startswith("[") else f"{spec_path}.{field}")


def _text(text: str) -> str:
    # JSON cannot hold the halves of surrogate pairs, and texts may quote what a user wrote.
    return text.encode(errors="replace").decode()
