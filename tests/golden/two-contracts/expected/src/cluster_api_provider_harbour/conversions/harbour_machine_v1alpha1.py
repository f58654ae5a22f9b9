"""HarbourMachine between v1alpha1 and the hub, which is the storage version v1beta1.

Fields of the same name and type are copied.  Return the others here; what you leave out is kept in
an annotation and comes back with the next conversion, but no client of the other version sees it.
The tests in tests/test_conformance.py hold these functions lossless: a field that one direction
reads, the other returns.
"""

from __future__ import annotations

from .._generated.api import harbour_machine as hub
from .._generated.conversion import harbour_machine_v1alpha1 as v1alpha1


def spec_to_hub(spec: v1alpha1.Spec) -> v1alpha1.ChangedHubSpec:
    """Return the fields that v1beta1 has, and not v1alpha1 with the same type."""
    return v1alpha1.ChangedHubSpec()


def spec_from_hub(spec: hub.HarbourMachineSpec) -> v1alpha1.ChangedSpec:
    """Return the fields that v1alpha1 has, and not v1beta1 with the same type."""
    return v1alpha1.ChangedSpec()


def status_to_hub(status: v1alpha1.Status) -> v1alpha1.ChangedHubStatus:
    """Return the fields that v1beta1 has, and not v1alpha1 with the same type."""
    return v1alpha1.ChangedHubStatus()


def status_from_hub(status: hub.HarbourMachineStatus) -> v1alpha1.ChangedStatus:
    """Return the fields that v1alpha1 has, and not v1beta1 with the same type."""
    return v1alpha1.ChangedStatus()
