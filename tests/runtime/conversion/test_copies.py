"""Nested fields are copied between the types of two API versions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import pytest

from capsmith_runtime.api.serialization import DecodingError
from capsmith_runtime.conversion.copies import copy_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class OldDevice:
    name: str
    mtu: str | None = None
    mode: str | None = None
    network_name: str | None = field(default=None, metadata={"json": "networkName"})


@dataclass(frozen=True, slots=True, kw_only=True)
class OldNetwork:
    devices: tuple[OldDevice, ...]
    primary: OldDevice | None = None
    by_zone: Mapping[str, OldDevice] = field(default_factory=dict)
    legacy: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDevice:
    name: str
    mtu: int | None = None
    mode: Literal["dhcp", "static"] | None = None
    net: str | None = field(default=None, metadata={"json": "networkName"})


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRoutes:
    static: tuple[str, ...]
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewNetwork:
    devices: tuple[NewDevice, ...]
    routes: NewRoutes
    primary: NewDevice | None = None
    by_zone: Mapping[str, NewDevice] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSize:
    text: str


_EMPTY = NewRoutes(static=(), labels={})


def test_objects_in_fields_lists_and_maps_are_copied() -> None:
    device = OldDevice(name="eth0", network_name="lan", mode="dhcp")
    old = OldNetwork(devices=(device,), primary=device, by_zone={"a": device}, legacy=1)
    new = NewDevice(name="eth0", net="lan", mode="dhcp")
    copied = copy_fields(old, NewNetwork)
    assert copied == NewNetwork(devices=(new,), routes=_EMPTY, primary=new, by_zone={"a": new})


def test_optional_fields_of_another_type_are_left_out() -> None:
    old = OldNetwork(devices=(OldDevice(name="eth0", mtu="1500", mode="bridge"),))
    copied = copy_fields(old, NewNetwork)
    assert copied.devices == (NewDevice(name="eth0"),)


def test_an_optional_object_keeps_the_fields_that_the_target_has() -> None:
    old = OldNetwork(devices=(), primary=OldDevice(name="eth0", mtu="1500", network_name="lan"))
    assert copy_fields(old, NewNetwork).primary == NewDevice(name="eth0", net="lan")


def test_what_only_the_target_requires_is_empty() -> None:
    assert copy_fields(None, NewNetwork) == NewNetwork(devices=(), routes=_EMPTY)


def test_a_required_value_that_cannot_be_empty_is_an_error_with_its_path() -> None:
    with pytest.raises(DecodingError, match=r"NewSize\.text: expected text, found nothing"):
        copy_fields(OldNetwork(devices=()), NewSize)
