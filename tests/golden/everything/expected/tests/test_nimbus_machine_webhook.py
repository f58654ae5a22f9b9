"""Unit tests of validation and defaults; they need no API server."""

from __future__ import annotations

from capsmith_runtime.testing import admission as testing

from capn._generated.api.nimbus_machine import NimbusMachineSpec
from capn.webhooks.nimbus_machine import NimbusMachineDefaulter, NimbusMachineValidator

SPEC = testing.spec_from(
    NimbusMachineSpec, {"flavor": "example", "imageID": "example", "sshKeys": ["example"]}
)


def test_valid_object_is_accepted() -> None:
    obj = testing.admission_object(SPEC)

    assert list(NimbusMachineValidator().validate_create(obj)) == []


def test_unchanged_object_is_accepted() -> None:
    obj = testing.admission_object(SPEC)

    assert list(NimbusMachineValidator().validate_update(obj, obj)) == []


def test_defaults_are_complete_after_the_first_call() -> None:
    once = NimbusMachineDefaulter().default(testing.admission_object(SPEC))

    assert NimbusMachineDefaulter().default(testing.admission_object(once)) == once
