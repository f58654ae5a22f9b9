"""What the author of validation and defaulting webhooks imports."""

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
