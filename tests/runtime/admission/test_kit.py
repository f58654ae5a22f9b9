"""The conformance tests of validation and defaulting fail where an author breaks the rules."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from capsmith_runtime.admission import AdmissionObject, AdmissionWarning, FieldError
from capsmith_runtime.admission.controllers import AdmissionWebhook
from capsmith_runtime.component import Component
from capsmith_runtime.reconcile.permissions import PolicyRule
from capsmith_runtime.testing.conformance.admission import TestAdmissionDefaulting as Defaulting
from capsmith_runtime.testing.conformance.admission import TestAdmissionValidation as Validation
from capsmith_runtime.testing.conformance.admission.webhooks import AdmissionCase
from capsmith_runtime.testing.provider import ProviderUnderTest
from tests.runtime.admission.requests import GROUP, WidgetSpec, author, kind, template, widget

Widget = AdmissionObject[WidgetSpec]
SCHEMA = {"properties": {"spec": {"properties": {"size": {}, "zone": {"default": "z"}}}}}
calls = itertools.count()


def case(cls: type[Any], folder: Path, **changes: Any) -> AdmissionCase:
    """Return the case of a repository with one sample and one template of the kind."""
    crds = [
        {
            "kind": "CustomResourceDefinition",
            "spec": {
                "group": GROUP,
                "names": {"kind": name, "plural": f"{name.lower()}s"},
                "versions": [
                    {"name": "v1alpha1", "served": True, "schema": {"openAPIV3Schema": SCHEMA}}
                ],
            },
        }
        for name in ("Widget", "WidgetTemplate")
    ]
    files: dict[str, list[Any]] = {
        "config/crd/all.yaml": crds,
        "config/samples/widget.yaml": [widget({"size": "s"})],
        "templates/cluster.yaml": [
            None,
            template({"size": "${SIZE:=m}"}),
            widget({"size": "${A}"}),
        ],
    }
    for name, documents in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(yaml.safe_dump_all(documents))
    component = Component(
        label="infrastructure-acme",
        namespace="acme-system",
        contract="v1beta2",
        groups=(AdmissionWebhook((kind(cls, **changes),)),),
        permissions=(PolicyRule(("",), ("configmaps",), ("get",)),),
    )
    provider = ProviderUnderTest(components={"infrastructure": component}, repository=folder)
    (found,) = Validation.cases(provider)
    return found


def describe(obj: Widget) -> list[AdmissionWarning]:
    """Require that the object belongs to a Cluster, and that its names are valid."""
    assert obj.cluster is not None
    assert obj.cluster.namespace == obj.namespace
    found = obj.client.get("v1", "ConfigMap", obj.name)
    return [AdmissionWarning(f"{obj.cluster.name} {found}")]


def test_samples_and_templates_have_the_defaults_of_the_crd(tmp_path: Path) -> None:
    found = list(case(author(()), tmp_path).objects())

    assert [obj["kind"] for obj in found] == ["Widget", "WidgetTemplate"]
    assert found[0]["spec"] == {"size": "s", "zone": "z"}


def test_a_sound_author_passes(tmp_path: Path) -> None:
    sound = case(author(lambda obj: replace(obj.spec, zone="z")), tmp_path, validator=None)
    Defaulting().test_defaulting_again_changes_nothing(sound)
    Defaulting().test_the_same_object_gets_the_same_defaults(sound)
    Validation().test_samples_and_templates_are_accepted(case(author(()), tmp_path, defaulter=None))
    validator = case(author(describe), tmp_path, defaulter=None)
    Validation().test_the_state_of_the_cluster_refuses_nothing(validator)


@pytest.mark.parametrize("result", [[FieldError("size", "wrong")], ValueError("x")])
def test_a_refused_sample_is_reported(result: Any, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="Widget"):
        Validation().test_samples_and_templates_are_accepted(
            case(author(result), tmp_path, defaulter=None)
        )


def offers(obj: Widget) -> list[FieldError]:
    found = obj.client.get("v1", "ConfigMap", "offers")
    return [] if found else [FieldError("size", "is not offered")]


@pytest.mark.parametrize(
    "result",
    [
        lambda obj: [FieldError("size", "too early")] if obj.cluster is None else [],
        offers,
        lambda obj: [obj.client.get("v1", "Secret", "password")],
    ],
    ids=["needs the Cluster", "needs another object", "reads what is not declared"],
)
def test_a_refusal_for_what_is_missing_is_reported(result: Any, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="Widget"):
        Validation().test_samples_and_templates_are_accepted(
            case(author(result), tmp_path, defaulter=None)
        )


@pytest.mark.parametrize(
    ("is_refused", "state"),
    [
        (lambda cluster: not cluster.control_plane_initialized, "new"),
        (lambda cluster: cluster.infrastructure_provisioned, "provisioned"),
        (lambda cluster: cluster.paused, "paused"),
    ],
)
def test_a_refusal_for_the_state_of_the_cluster_is_reported(
    is_refused: Any, state: str, tmp_path: Path
) -> None:
    def decide(obj: Widget) -> list[FieldError]:
        refused = obj.cluster is not None and is_refused(obj.cluster)
        return [FieldError("size", "not now")] if refused else []

    made = case(author(decide), tmp_path, defaulter=None)
    Validation().test_samples_and_templates_are_accepted(made)
    with pytest.raises(AssertionError, match=f"the Cluster is {state}"):
        Validation().test_the_state_of_the_cluster_refuses_nothing(made)


@pytest.mark.parametrize(
    "default",
    [
        lambda obj: replace(obj.spec, zone=f"{obj.spec.zone}x"),
        lambda obj: replace(obj.spec, zone=str(next(calls))),
        ValueError("x"),
    ],
)
def test_defaults_that_change_again_are_reported(default: Any, tmp_path: Path) -> None:
    """Proves: TP-07."""
    broken = case(author(default), tmp_path, validator=None)

    with pytest.raises(AssertionError):
        Defaulting().test_defaulting_again_changes_nothing(broken)


def test_random_defaults_are_reported(tmp_path: Path) -> None:
    """They are complete after the first call, and other ones for the next object.

    Proves: TP-07.
    """

    def random(obj: Widget) -> WidgetSpec:
        return obj.spec if obj.spec.tags else replace(obj.spec, tags={"id": str(next(calls))})

    broken = case(author(random), tmp_path, validator=None)
    Defaulting().test_defaulting_again_changes_nothing(broken)
    with pytest.raises(AssertionError):
        Defaulting().test_the_same_object_gets_the_same_defaults(broken)
