"""Feature gates of authors, as operators set them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from capsmith_runtime import features, manager
from capsmith_runtime.component import Component
from capsmith_runtime.features import (
    FeatureGate,
    UnknownFeatureGateError,
    parse_feature_gates,
    set_feature_gates,
)
from capsmith_runtime.options import Options, parse


@pytest.fixture(autouse=True)
def gates() -> Iterator[None]:
    before = dict(features._gates)
    yield
    features._gates.clear()
    features._gates.update(before)


def load(component: str) -> Component:
    """Declare the gates of a component, as the import of its modules does."""
    if f"{component.title()}Gate" not in features._gates:
        FeatureGate(f"{component.title()}Gate")
    return Component(label=component, namespace="system", contract="v1beta2")


def test_gates_have_their_default_unless_a_flag_sets_them() -> None:
    """Proves: MG-05."""
    on, off = FeatureGate("On", default=True), FeatureGate("Off")
    declared = parse(["--feature-gates=declared"], ["infrastructure"])
    given = parse(["--feature-gates=On=false, Off=true"], ["infrastructure"])

    set_feature_gates(declared.feature_gates)
    assert (on.is_enabled, off.is_enabled) == (True, False)
    set_feature_gates(given.feature_gates)
    assert (on.is_enabled, off.is_enabled) == (False, True)
    with off.set_for_test(False):
        assert not off.is_enabled
    assert off.is_enabled


def test_unknown_gates_are_refused_with_the_list() -> None:
    known = FeatureGate("Known")

    with pytest.raises(UnknownFeatureGateError, match=r"unknown: A, B; known: .*Known"):
        set_feature_gates({"B": True, "Known": True, "A": False})
    assert not known.is_enabled


def test_a_gate_of_another_component_is_known() -> None:
    options = Options(component="bootstrap", feature_gates={"IpamGate": True})
    components = ["bootstrap", "ipam"]
    load("bootstrap")
    manager._set_feature_gates(options, components, load)

    with pytest.raises(UnknownFeatureGateError):
        manager._set_feature_gates(
            Options(component="bootstrap", feature_gates={"OtherGate": True}), components, load
        )


def test_a_manager_with_an_unknown_gate_ends(capsys: pytest.CaptureFixture[str]) -> None:
    assert manager.main(["bootstrap"], load, ["--feature-gates=Typo=true"]) == 2
    assert "--feature-gates: unknown: Typo; known: BootstrapGate" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["", "fastBoot", "Fast-Boot", "Twice"])
def test_names_of_gates_are_unique_and_in_camel_case(name: str) -> None:
    FeatureGate("Twice")
    with pytest.raises(ValueError, match="CamelCase"):
        FeatureGate(name)


@pytest.mark.parametrize(
    "text", ["A", "A=", "A=yes", "=true", "A=true,A=false", "A=true,", "a=true"]
)
def test_no_feature_gates(text: str) -> None:
    with pytest.raises(ValueError, match="Name=true"):
        parse_feature_gates(text)
