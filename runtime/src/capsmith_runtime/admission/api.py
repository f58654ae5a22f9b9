"""Base classes of validators and defaulters, with the arguments and results of their methods.

Methods may be ``def`` or ``async def``.  The API server calls them while a user waits, on the
leader and on all other managers: decide by the arguments alone, and call no other system.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar, get_args

Spec = TypeVar("Spec")

Reason = Literal[
    "FieldValueInvalid",
    "FieldValueRequired",
    "FieldValueForbidden",
    "FieldValueNotSupported",
    "FieldValueDuplicate",
]


@dataclass(frozen=True, slots=True)
class FieldError:
    """An error in one field; all errors of an object are reported together, as Kubernetes does."""

    field: str
    """Path below the spec as in YAML, such as ``disks[0].sizeGiB``; empty for the spec itself."""
    message: str
    """The reason, without the path.  Users see it: it must hold no secret."""
    reason: Reason = "FieldValueInvalid"
    """The kind of error, as in the ``Status`` of a refused request."""

    def __post_init__(self) -> None:
        if self.reason not in get_args(Reason):
            raise ValueError(f"FieldError.reason must be one of {get_args(Reason)}")
        if not (isinstance(self.field, str) and isinstance(self.message, str) and self.message):
            raise ValueError("FieldError needs a field and a message")


@dataclass(frozen=True, slots=True)
class AdmissionWarning:
    """A warning that kubectl prints; the object is accepted nevertheless."""

    message: str
    """The text, which must hold no secret."""


ValidationResult = Iterable[FieldError | AdmissionWarning]
"""The errors and warnings of a validator, in any number; errors refuse the object."""


# Without slots: Python 3.11 cannot make an object by Class[T](...) with them.
@dataclass(frozen=True, kw_only=True)
class AdmissionObject(Generic[Spec]):
    """An object or a template in a request; it may not exist yet."""

    name: str
    namespace: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    spec: Spec
    """The spec, as an instance of the generated class."""
    is_template: bool = False
    """Whether ``spec`` is ``spec.template.spec`` of a template."""


class Validator(ABC, Generic[Spec]):
    """Base class of validators: accept or refuse objects by rules that CEL cannot express.

    The API server has already checked the schema and the CEL rules of the CRD.
    """

    @abstractmethod
    def validate_create(
        self, obj: AdmissionObject[Spec]
    ) -> ValidationResult | Awaitable[ValidationResult]:
        """Return errors and warnings for a new object; without errors it is accepted."""

    def validate_update(
        self, old: AdmissionObject[Spec], new: AdmissionObject[Spec]
    ) -> ValidationResult | Awaitable[ValidationResult]:
        """Return errors and warnings for a changed spec; by default call ``validate_create``.

        Updates that leave the author's fields unchanged are accepted without a call, and so are
        all updates of an object that is being deleted.
        """
        return self.validate_create(new)

    def validate_delete(
        self, obj: AdmissionObject[Spec]
    ) -> ValidationResult | Awaitable[ValidationResult]:
        """Return errors and warnings for a deletion; called only if provider.yaml enables it."""
        return ()


class Defaulter(ABC, Generic[Spec]):
    """Base class of defaulters: fill in fields for which a constant in the schema is not enough."""

    @abstractmethod
    def default(self, obj: AdmissionObject[Spec]) -> Spec | Awaitable[Spec]:
        """Return the spec with defaults, such as ``dataclasses.replace(obj.spec, ...)``.

        The result must depend on ``obj`` alone, and applying the defaults again must change
        nothing: Cluster API compares templates by dry runs, and any difference rolls out machines
        again.
        """
