"""The conformance tests of validation and defaulting fail where an author breaks the rules."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from capsmith_runtime.admission import AdmissionObject, FieldError
from capsmith_runtime.admission.controllers import AdmissionWebhook
from capsmith_runtime.component import Component
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
    )
    provider = ProviderUnderTest(components={"infrastructure": component}, repository=folder)
    (found,) = Validation.cases(provider)
    return found


def test_samples_and_templates_have_the_defaults_of_the_crd(tmp_path: Path) -> None:
    found = list(case(author(()), tmp_path).objects())

    assert [obj["kind"] for obj in found] == ["Widget", "WidgetTemplate"]
    assert found[0]["spec"] == {"size": "s", "zone": "z"}


def test_a_sound_author_passes(tmp_path: Path) -> None:
    sound = case(author(lambda obj: replace(obj.spec, zone="z")), tmp_path, validator=None)
    Defaulting().test_defaulting_again_changes_nothing(sound)
    Defaulting().test_the_same_object_gets_the_same_defaults(sound)
    Validation().test_samples_and_templates_are_accepted(case(author(()), tmp_path, defaulter=None))


@pytest.mark.parametrize("result", [[FieldError("size", "wrong")], ValueError("x")])
def test_a_refused_sample_is_reported(result: Any, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="Widget"):
        Validation().test_samples_and_templates_are_accepted(
            case(author(result), tmp_path, defaulter=None)
        )


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
