"""Public names for authors of validation and defaulting webhooks."""

from capsmith_runtime.admission.api import (
    AdmissionObject,
    AdmissionWarning,
    Defaulter,
    FieldError,
    ValidationResult,
    Validator,
)

__all__ = [
    "AdmissionObject",
    "AdmissionWarning",
    "Defaulter",
    "FieldError",
    "ValidationResult",
    "Validator",
]
