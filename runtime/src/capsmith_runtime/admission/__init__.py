"""Public names for authors of validation and defaulting webhooks."""

from capsmith_runtime.admission.api import (
    AdmissionObject,
    AdmissionWarning,
    Defaulter,
    FieldError,
    ValidationResult,
    Validator,
)
from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.reconcile.kubernetes_client import KubernetesReader

__all__ = [
    "AdmissionObject",
    "AdmissionWarning",
    "Cluster",
    "Defaulter",
    "FieldError",
    "KubernetesReader",
    "ValidationResult",
    "Validator",
]
