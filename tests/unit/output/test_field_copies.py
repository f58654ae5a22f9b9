"""Scaffolds of conversions copy objects that both versions have, and leave the rest to authors."""

from __future__ import annotations

import pytest

from capsmith.commands.load import load_text
from capsmith.output.field_copies import FunctionCopies, list_function_copies
from capsmith.output.python_types import list_converted_versions

_DESCRIPTION = """\
capsmith: 1
name: acme
repository: https://github.com/acme/cluster-api-provider-acme
contracts: [v1beta2]
apiVersions: [v1alpha1, {{name: v1beta1, storage: true}}]
releases: {{v0.1: v1beta2}}
infrastructure:
  AcmeCluster: {{implements: InfraCluster}}
  AcmeMachine:
    implements: InfraMachine
    spec: {{size: string!, net: {hub}}}
    versions:
      v1alpha1:
        spec: {{size: string!, net: {spoke}}}
"""
_HUB, _SPOKE = "hub.AcmeMachineSpecNet", "v1alpha1.SpecNet"


def _object(properties: str, more: str = "") -> str:
    return f"{{type: object, properties: {{{properties}}}{more}}}"


def _copies(hub: str, spoke: str) -> dict[str, FunctionCopies]:
    loaded = load_text(_DESCRIPTION.format(hub=hub, spoke=spoke), "provider.yaml")
    assert loaded.provider is not None, loaded.findings
    (component,) = loaded.provider.components
    (converted,) = list_converted_versions(component)
    return list_function_copies(converted)


def _expressions(hub: str, spoke: str) -> list[str]:
    found = _copies(hub, spoke)
    assert [each.missing for each in found.values()] == [(), ()]
    return [field.expression for each in found.values() for field in each.fields]


_REQUIRED = ", required: true"


def test_a_required_object_is_copied_without_what_the_other_version_lacks() -> None:
    hub, spoke = _object("a: string, b: string", _REQUIRED), _object("a: string", _REQUIRED)
    assert _expressions(hub, spoke) == [f"copy_fields(spec.net, {each})" for each in (_HUB, _SPOKE)]


def test_an_object_that_one_version_requires_is_empty_if_it_is_absent() -> None:
    to_hub, from_hub = _expressions(_object("a: string"), _object("b: string", _REQUIRED))
    assert to_hub == f"copy_fields(spec.net, {_HUB})"
    assert from_hub == f"copy_fields(spec.net, {_SPOKE})"
    to_hub, from_hub = _expressions(_object("a: string", _REQUIRED), _object("b: string"))
    assert to_hub == f"copy_fields(spec.net, {_HUB})"
    assert from_hub == f"copy_fields(spec.net, {_SPOKE})"


def test_items_of_a_list_are_copied_one_by_one() -> None:
    items = [
        f"{{type: array, required: true, items: {_object(each)}}}"
        for each in ("a: string", "b: string")
    ]
    assert _expressions(*items)[0] == f"tuple(copy_fields(each, {_HUB}) for each in spec.net)"


def test_a_list_that_one_version_requires_is_empty_in_its_place() -> None:
    strings = "type: array, items: string"
    assert _expressions(f"{{{strings}{_REQUIRED}}}", f"{{{strings}}}") == ["spec.net", "spec.net"]


@pytest.mark.parametrize(
    ("hub", "spoke", "missing"),
    [
        pytest.param("string!", "string", [("net",), ()], id="text"),
        pytest.param(_object("a: string!"), "string", [(), ()], id="optional"),
        pytest.param(_object("a: string!", _REQUIRED), "string!", [("net",), ("net",)], id="type"),
        pytest.param(
            _object("a: string!", _REQUIRED),
            _object("a: string", _REQUIRED),
            [("net",), ("net",)],
            id="text-inside",
        ),
        pytest.param(
            _object("a: {type: integer, default: 1}", _REQUIRED),
            _object("b: integer", _REQUIRED),
            [("net",), ("net",)],
            id="default-of-one-version",
        ),
        pytest.param(
            f"{{type: array, items: string, minItems: 1{_REQUIRED}}}",
            "{type: array, items: string}",
            [("net",), ()],
            id="list-that-is-never-empty",
        ),
    ],
)
def test_what_cannot_be_copied_is_left_to_the_author(
    hub: str, spoke: str, missing: list[tuple[str, ...]]
) -> None:
    found = _copies(hub, spoke)
    assert [each.missing for each in found.values()] == missing
    assert all(not each.fields for each in found.values())
