"""Whether machines run by KVM."""

from __future__ import annotations

import pytest

from tests.vm.acceleration import decide_domain_type

_PLAIN = "model name\t: Xeon\nflags\t\t: fpu vme hypervisor lahf_lm\n"
_VIRTUALIZING = "model name\t: Xeon\nflags\t\t: fpu vmx lahf_lm\n"


@pytest.mark.parametrize(
    ("chosen", "processor", "has_kvm", "decided"),
    [
        (None, _VIRTUALIZING, True, "kvm"),
        (None, _VIRTUALIZING.replace("vmx", "svm"), True, "kvm"),
        (None, _VIRTUALIZING, False, "qemu"),
        (None, _PLAIN, True, "qemu"),
        (None, "flags\t\t: novmx\nmodel name\t: vmx\n", True, "qemu"),
        ("kvm", _PLAIN, True, "kvm"),
        ("qemu", _VIRTUALIZING, True, "qemu"),
    ],
)
def test_type_of_domains(chosen: str | None, processor: str, has_kvm: bool, decided: str) -> None:
    assert decide_domain_type(chosen, processor, has_kvm) == decided
