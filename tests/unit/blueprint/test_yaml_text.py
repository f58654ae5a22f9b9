"""to_yaml writes for the parsers of Go, and for clusterctl, which replaces variables first."""

from __future__ import annotations

import pytest
import yaml

from capsmith.blueprint.filters import to_yaml
from capsmith.blueprint.provider_filters import find_shared_contract_labels, join_for_display
from tests.unit.provider.build import provider, version


@pytest.mark.parametrize(
    "text", ["y", "N", "no", "on", "1e3", "0o17", "017", "+1", ".5", "1_000", "0x1F", "null", "~"]
)
def test_what_another_parser_could_misread_is_quoted(text: str) -> None:
    assert to_yaml(text)[0] in "'\""
    assert yaml.safe_load(to_yaml(text)) == text


@pytest.mark.parametrize("text", ["yes-machine", "v1beta2", "north", "acme-system"])
def test_plain_words_stay_plain(text: str) -> None:
    assert to_yaml(text) == text


def test_what_replaces_a_variable_stays_a_string() -> None:
    assert to_yaml({"size": "${SIZE:=large}"}) == 'size: "${SIZE:=large}"'
    assert to_yaml({"cores": 2}) == "cores: 2"


def test_a_label_stands_for_all_crds_of_a_component_or_for_none() -> None:
    component = provider().components[0]
    assert find_shared_contract_labels(component) == {"cluster.x-k8s.io/v1beta2": "v1alpha1"}

    first, *rest = component.resources
    other = first._replace(versions=(version("v1alpha2"),))
    mixed = component._replace(resources=(other, *rest))
    assert find_shared_contract_labels(mixed) == {}


def test_the_core_group_has_a_name_for_display() -> None:
    assert join_for_display(("", "events.k8s.io")) == "core, events.k8s.io"
