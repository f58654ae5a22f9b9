"""Base classes for validators and defaulters, with their methods' arguments and results.

Methods may be ``def`` or ``async def``. The API server calls them while a user waits, on the leader
and on all other replicas. Base your decisions on the arguments alone, and do not call other
systems: validators may read other objects with ``obj.client``, but must not change any.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar, get_args

from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.errors import KubernetesError
from capsmith_runtime.reconcile.kubernetes_client import KubernetesReader

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
    """An error in one field.

    All of an object's errors are reported together, as in Kubernetes.
    """

    field: str
    """Path below the spec as in YAML, such as ``disks[0].sizeGiB``, empty for the spec itself."""
    message: str
    """The reason, without the path. Users see the message, so it must not contain a secret."""
    reason: Reason = "FieldValueInvalid"
    """Type of the error, as in a rejected request's ``Status``."""

    def __post_init__(self) -> None:
        if self.reason not in get_args(Reason):
            raise ValueError(f"FieldError.reason must be one of {get_args(Reason)}")
        if not (isinstance(self.field, str) and isinstance(self.message, str) and self.message):
            raise ValueError("FieldError needs a field and a message")


@dataclass(frozen=True, slots=True)
class AdmissionWarning:
    """A warning that kubectl prints; it does not prevent the object from being accepted."""

    message: str
    """The warning for users, which must not contain a secret."""


ValidationResult = Iterable[FieldError | AdmissionWarning]
"""A validator's errors and warnings, in any order; any error rejects the object."""


# No slots, because Class[T](...) fails with slots in Python 3.11.
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
    client: KubernetesReader = field(default_factory=KubernetesReader, repr=False, compare=False)
    """Client for reading other objects, for validators only.

    It may read what provider.yaml declares and the provider's own kinds, and its requests end with
    the call.  Objects that ``clusterctl move`` or a user creates later do not exist yet.
    """
    _cluster: Cluster | KubernetesError | None = field(default=None, repr=False, compare=False)

    @property
    def cluster(self) -> Cluster | None:
        """Return the Cluster that the object's owner or label names, or None if it does not exist.

        Also returns None to defaulters, and for an object that has neither owner nor label yet,
        such as most objects that users create and the templates of a ClusterClass.  Raises
        KubernetesError if the Cluster could not be read.
        """
        if isinstance(self._cluster, KubernetesError):
            raise self._cluster
        return self._cluster


class Validator(ABC, Generic[Spec]):
    """Base class for validators, which check objects against rules that CEL cannot express.

    The API server has already checked the CRD's schema and CEL rules.
    """

    @abstractmethod
    def validate_create(
        self, obj: AdmissionObject[Spec]
    ) -> ValidationResult | Awaitable[ValidationResult]:
        """Return errors and warnings for a new object; it is accepted if there are no errors."""

    def validate_update(
        self, old: AdmissionObject[Spec], new: AdmissionObject[Spec]
    ) -> ValidationResult | Awaitable[ValidationResult]:
        """Return errors and warnings for a changed spec; by default, calls ``validate_create``.

        Updates that leave the author's fields unchanged are accepted without a call, as are all
        updates to an object that is being deleted.
        """
        return self.validate_create(new)

    def validate_delete(
        self, obj: AdmissionObject[Spec]
    ) -> ValidationResult | Awaitable[ValidationResult]:
        """Return errors and warnings for a deletion; called only if enabled in provider.yaml."""
        return ()


class Defaulter(ABC, Generic[Spec]):
    """Base class for defaulters, for fields whose default is not a constant in the schema."""

    @abstractmethod
    def default(self, obj: AdmissionObject[Spec]) -> Spec | Awaitable[Spec]:
        """Return the spec with defaults, such as ``dataclasses.replace(obj.spec, ...)``.

        The spec must depend on ``obj`` alone, and applying the defaults again must change nothing:
        Cluster API compares templates by dry runs, and any difference rolls out the machines again.
        """
