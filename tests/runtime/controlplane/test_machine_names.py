"""Names of new Machines: by default, and from a template."""

from __future__ import annotations

import re

import pytest

from capsmith_runtime.controlplane.scale import generate_machine_name


def test_machine_names_are_valid_labels() -> None:
    for base in ("cp", "c" * 63, "c" * 57 + "-x", "a.b"):
        found = generate_machine_name(base, "c1")
        assert len(found) <= 63
        assert found.startswith(base[:50])
        assert found[-6] == "-"
        assert not found[:-6].endswith(("-", "."))


@pytest.mark.parametrize(
    ("template", "pattern"),
    [
        ("{{ .controlPlane.name }}-{{ .random }}", "c1-cp-[a-z0-9]{5}"),
        ("master-{{.random}}", "master-[a-z0-9]{5}"),
        ("{{ .cluster.name }}-{{ .random }}-x", "c1-[a-z0-9]{5}-x"),
        ("{{ .random }}{{ .random }}", r"([a-z0-9]{5})\1"),
    ],
)
def test_a_template_names_machines(template: str, pattern: str) -> None:
    assert re.fullmatch(pattern, generate_machine_name("c1-cp", "c1", template))


def test_a_long_name_keeps_its_random_end() -> None:
    found = {generate_machine_name("c1-cp", "c" * 70, "{{ .random }}-{{ .cluster.name }}")}
    found |= {generate_machine_name("c1-cp", "c" * 70, "{{ .cluster.name }}-{{ .random }}")}

    assert {len(name) for name in found} == {63}
    assert all(re.search("-[a-z0-9]{5}$", name) for name in found)
    assert len(found) == 2


def test_values_are_not_templates_themselves() -> None:
    found = generate_machine_name("{{ .random }}", "c1", "{{ .controlPlane.name }}-{{ .random }}")

    assert found.startswith("{{ .random }}-")
