"""The conformance tests of validation and defaulting fail where an author breaks the rules."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from capsmith_runtime.admission import AdmissionObject, FieldError
from capsmith_runtime.admission.controllers import AdmissionWebhook
from capsmith_runtime.component import Component
from capsmith_runtime.testing.conformance.admission import (
    TestAdmissionDefaulting as Defaulting,
)
from capsmith_runtime.testing.conformance.admission import (
    TestAdmissionManifests as Manifests,
)
from capsmith_runtime.testing.conformance.admission import (
    TestAdmissionValidation as Validation,
)
from capsmith_runtime.testing.conformance.admission.webhooks import AdmissionCase
from capsmith_runtime.testing.provider import ProviderUnderTest
from tests.runtime.admission.requests import (
    GROUP,
    WidgetSpec,
    author,
    kind,
    template,
    widget,
)

Widget = AdmissionObject[WidgetSpec]
SCHEMA = {"properties": {"spec": {"properties": {"size": {}, "zone": {"default": "z"}}}}}
calls = itertools.count()


def case(cls: type[Any], folder: Path, *webhooks: dict[str, Any], **changes: Any) -> AdmissionCase:
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
        "config/webhook/manifests.yaml": [*webhooks],
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


def configuration(**changes: Any) -> dict[str, Any]:
    """Return the configuration of the validating webhook, with another value of one field."""
    path = f"/validate/widgets.{GROUP}"
    rule = {"apiVersions": ["v1alpha1"], "resources": ["widgets", "widgettemplates"]}
    webhook = {
        "clientConfig": {
            "service": {"name": "acme-system-webhook", "namespace": "acme-system", "path": path}
        },
        "timeoutSeconds": 10,
        "sideEffects": "None",
        "rules": [rule | {key: value for key, value in changes.items() if key in rule}],
    }
    others = {key: value for key, value in changes.items() if key not in rule}
    return {"kind": "ValidatingWebhookConfiguration", "webhooks": [webhook | others]}


@pytest.mark.parametrize(
    ("changes", "is_right"),
    [
        ({}, True),
        ({"timeoutSeconds": 5}, False),
        ({"sideEffects": "Unknown"}, False),
        ({"apiVersions": ["v1alpha2"]}, False),
        ({"resources": ["widgets"]}, False),
    ],
)
def test_manifests_that_differ_from_the_code_are_reported(
    changes: dict[str, Any], is_right: bool, tmp_path: Path
) -> None:
    found = case(author(()), tmp_path, configuration(**changes), defaulter=None)

    def check() -> None:
        Manifests().test_the_api_server_calls_each_path(found)
        Manifests().test_every_served_version_is_admitted(found, "ValidatingWebhookConfiguration")

    assert _passes(check) is is_right


def test_a_webhook_that_is_not_configured_is_reported(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        Manifests().test_the_api_server_calls_each_path(case(author(()), tmp_path))


def _passes(check: Callable[[], None]) -> bool:
    try:
        check()
    except AssertionError:
        return False
    return True
