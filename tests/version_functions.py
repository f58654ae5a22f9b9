"""The conversion between API versions that an author of examples/two-contracts would write."""

from __future__ import annotations

from pathlib import Path

MODULE = Path("src/cluster_api_provider_harbour/conversions/harbour_machine_v1alpha1.py")
FUNCTIONS = '''\
"""HarbourMachine between v1alpha1 and the hub."""

from __future__ import annotations

from .._generated.api import harbour_machine as hub
from .._generated.conversion import harbour_machine_v1alpha1 as v1alpha1


def spec_to_hub(spec: v1alpha1.Spec) -> v1alpha1.ChangedHubSpec:
    """Split the placement."""
    if spec.placement is None:
        return v1alpha1.ChangedHubSpec()
    zone, _, rack = spec.placement.partition("/")
    return v1alpha1.ChangedHubSpec(zone=zone, rack=rack)


def spec_from_hub(spec: hub.HarbourMachineSpec) -> v1alpha1.ChangedSpec:
    """Join zone and rack; a machine with one of them has no placement."""
    if spec.zone is None or spec.rack is None:
        return v1alpha1.ChangedSpec()
    return v1alpha1.ChangedSpec(placement=f"{spec.zone}/{spec.rack}")


def status_to_hub(status: v1alpha1.Status) -> v1alpha1.ChangedHubStatus:
    """Rename the power, which is a text now."""
    if status.powered_on is None:
        return v1alpha1.ChangedHubStatus()
    return v1alpha1.ChangedHubStatus(power="Running" if status.powered_on else "Stopped")


def status_from_hub(status: hub.HarbourMachineStatus) -> v1alpha1.ChangedStatus:
    """Return whether the machine is running."""
    if status.power is None:
        return v1alpha1.ChangedStatus()
    return v1alpha1.ChangedStatus(powered_on=status.power == "Running")
'''


def write_functions(repository: Path, text: str = FUNCTIONS) -> None:
    """Replace the scaffold."""
    target = repository / MODULE
    assert target.is_file()
    target.write_text(text, encoding="utf-8")
