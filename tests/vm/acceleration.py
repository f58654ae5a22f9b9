"""How machines run here: by KVM where that helps, by QEMU's software emulator elsewhere."""

from __future__ import annotations

import fcntl
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

DomainType = Literal["kvm", "qemu"]
VARIABLE: Final = "CAPSMITH_VM_DOMAIN_TYPE"
"""Set to `kvm` or `qemu`, it decides; to compare both, or where this module is wrong."""
_DEVICE: Final = Path("/dev/kvm")
_CREATE_VM: Final = 0xAE01
_VIRTUALIZATION: Final = re.compile(r"^flags\s*:.*\b(vmx|svm)\b", re.MULTILINE)


def choose_domain_type() -> DomainType:
    """Return what libvirt calls the type of the machines' domains on this computer."""
    processor = Path("/proc/cpuinfo").read_text()
    return decide_domain_type(os.environ.get(VARIABLE), processor, has_kvm())


def decide_domain_type(chosen: str | None, processor: str, has_kvm: bool) -> DomainType:
    """Return the type that is chosen, or else the faster one.

    A computer whose processor has no virtualization can have KVM too, which then interprets a
    guest's kernel instruction by instruction: that is slower than the emulator, which translates.
    """
    if chosen == "kvm":
        return "kvm"
    if chosen == "qemu":
        return "qemu"
    return "kvm" if has_kvm and _VIRTUALIZATION.search(processor) else "qemu"


def has_kvm() -> bool:
    """Report whether this process can create a machine with KVM."""
    with suppress(OSError):
        device = os.open(_DEVICE, os.O_RDWR | os.O_CLOEXEC)
        try:
            os.close(fcntl.ioctl(device, _CREATE_VM, 0))
        finally:
            os.close(device)
        return True
    return False
