"""The variables of cluster templates that the README explains."""

from __future__ import annotations

import re
from typing import Any

import pytest

from capsmith.commands.build import build
from capsmith.output.template_variables import list_template_variables
from tests.unit.provider.described import provider

_IN_TEMPLATE = re.compile(r"\$\{([A-Z0-9_]+):=")
_IN_README = re.compile(r"^\| `([A-Z0-9_]+)` \|", re.MULTILINE)


def _kind(role: str, field: str) -> dict[str, Any]:
    return {"implements": role, "spec": {field: {"type": "string", "required": True}}}


_KINDS = {
    "AcmeCluster": _kind("InfraCluster", "region"),
    "MetalCluster": _kind("InfraCluster", "rack"),
    "AcmeMachine": _kind("InfraMachine", "size"),
    "MetalMachine": _kind("InfraMachine", "model"),
    "AcmePool": _kind("InfraMachinePool", "size"),
    "MetalPool": _kind("InfraMachinePool", "model"),
}


def test_variables_are_described_by_their_fields() -> None:
    size = {"type": "string", "required": True, "description": "The size of the machine."}
    count = {"type": "integer", "required": True}
    region = {"type": "string", "required": True}
    kinds = {
        "AcmeCluster": {"implements": "InfraCluster", "spec": {"region": region}},
        "AcmeMachine": {"implements": "InfraMachine", "spec": {"size": size, "count": count}},
    }
    described = provider(infrastructure=kinds)
    assert [(each.name, each.description) for each in list_template_variables(described)] == [
        ("ACME_CLUSTER_REGION", "region of AcmeCluster"),
        ("ACME_MACHINE_SIZE", "The size of the machine."),
    ]


@pytest.mark.parametrize(
    ("flavors", "further"),
    [
        ([], set()),
        (["topology"], set()),
        (["machinepool"], {"ACME_POOL_SIZE"}),
        (["machinepool-metalpool"], {"METAL_POOL_MODEL"}),
        (["metal"], {"METAL_CLUSTER_RACK", "METAL_MACHINE_MODEL"}),
    ],
)
def test_the_readme_has_the_variables_of_the_generated_templates(
    flavors: list[str], further: set[str]
) -> None:
    described = provider(infrastructure=_KINDS, flavors=flavors)

    tree = build(described)
    templates = "".join(file.text for file in tree if str(file.path).startswith("templates/"))
    defaults = set(_IN_TEMPLATE.findall(templates))

    assert defaults >= {"ACME_CLUSTER_REGION", "ACME_MACHINE_SIZE"} | further
    assert defaults == set(_IN_README.findall(tree["README.md"].text))
