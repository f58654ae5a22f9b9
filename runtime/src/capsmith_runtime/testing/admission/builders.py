"""Builders of what validators and defaulters receive."""

from __future__ import annotations

from typing import Any, TypeVar

from capsmith_runtime.admission.api import AdmissionObject
from capsmith_runtime.testing.core import NAMESPACE

Spec = TypeVar("Spec")


def admission_object(spec: Spec, name: str = "object", **changes: Any) -> AdmissionObject[Spec]:
    """Return an object with a typed spec; ``changes`` replace its other fields."""
    fields: dict[str, Any] = {
        "name": name,
        "namespace": NAMESPACE,
        "labels": {},
        "annotations": {},
        "spec": spec,
    }
    return AdmissionObject(**fields | changes)
