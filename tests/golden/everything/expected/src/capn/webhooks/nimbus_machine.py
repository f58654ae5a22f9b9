"""Validation and defaults of NimbusMachine.

Rules and defaults in provider.yaml come first; write only those here that it cannot express.  The
API server calls this code while a user waits: call no other system.  What validators read
with obj.client and obj.cluster may be missing.
"""

from __future__ import annotations

from capsmith_runtime.admission import AdmissionObject, Defaulter, ValidationResult, Validator

from .._generated.api.nimbus_machine import NimbusMachineSpec


class NimbusMachineValidator(Validator[NimbusMachineSpec]):
    """Accepts or rejects objects and templates; all errors are reported at once."""

    def validate_create(self, obj: AdmissionObject[NimbusMachineSpec]) -> ValidationResult:
        """Return an error such as ``FieldError("path.of.field", "must be ...")`` for each field.

        `clusterctl move` creates existing objects again, so valid objects must stay valid.
        """
        return ()

    def validate_update(
        self,
        old: AdmissionObject[NimbusMachineSpec],
        new: AdmissionObject[NimbusMachineSpec],
    ) -> ValidationResult:
        """Return the errors of a changed spec, including changes that are not possible."""
        return self.validate_create(new)

    def validate_delete(self, obj: AdmissionObject[NimbusMachineSpec]) -> ValidationResult:
        """Return the reasons why the object must not be deleted."""
        return ()


class NimbusMachineDefaulter(Defaulter[NimbusMachineSpec]):
    """Fills in fields that depend on others; they must be optional in provider.yaml."""

    def default(self, obj: AdmissionObject[NimbusMachineSpec]) -> NimbusMachineSpec:
        """Return the spec with defaults, such as ``dataclasses.replace(obj.spec, field=...)``.

        The same object must always get the same defaults, and an object with defaults no others:
        otherwise, a ClusterClass rolls out machines again and again.
        """
        return obj.spec
