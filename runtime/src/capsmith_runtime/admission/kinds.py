"""Descriptions of the kinds that have validation or defaulting webhooks."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Final

from capsmith_runtime.admission.api import Defaulter, Validator
from capsmith_runtime.api.serialization import json_name

_SPEC: Final = ("spec",)
_TEMPLATE_SPEC: Final = ("spec", "template", "spec")


# No slots, because cached properties need a dictionary.
@dataclass(frozen=True, kw_only=True)
class AdmittedKind:
    """A kind that has a validating webhook, a defaulting webhook or both."""

    group: str
    kind: str
    plural: str
    spec: type[Any]
    """Dataclass of the kind's spec."""
    validator: type[Validator[Any]] | None = None
    defaulter: type[Defaulter[Any]] | None = None
    template: str = ""
    """Name of the template kind that is also validated and defaulted, or empty if there is none."""
    timeout_seconds: int = 10
    """Seconds that the API server waits for a response, from 1 to 30."""

    @property
    def validate_path(self) -> str:
        """Return the path in the URL of the kind's validating webhook."""
        return f"/validate/{self.plural}.{self.group}"

    @property
    def mutate_path(self) -> str:
        """Return the path in the URL of the kind's mutating webhook."""
        return f"/mutate/{self.plural}.{self.group}"

    @cached_property
    def own_fields(self) -> frozenset[str]:
        """Return the author's fields in the spec; all other fields belong to the contract."""
        return frozenset(json_name(field) for field in fields(self.spec))

    def spec_keys(self, kind: str) -> tuple[str, ...] | None:
        """Return the keys that lead to the spec in objects of ``kind``, or None if unknown."""
        if kind == self.kind:
            return _SPEC
        return _TEMPLATE_SPEC if kind and kind == self.template else None
