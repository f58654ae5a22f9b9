"""From JSON to the dataclasses of the author's kinds, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from capsmith_runtime.api.serialization import DecodingError, decode, encode_status


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    size: int = field(metadata={"json": "sizeGiB"})
    kind: Literal["ssd", "hdd"] = "ssd"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    name: str
    count: int = 1
    ratio: float | None = None
    on: bool = False
    port: int | str | None = None
    disks: tuple[Disk, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    root: Disk | None = None
    free: Any = None


def test_everything_is_read() -> None:
    spec = decode(
        Spec,
        {
            "name": "a",
            "count": 2,
            "ratio": 1,
            "on": True,
            "port": "http",
            "disks": [{"sizeGiB": 8}, {"sizeGiB": 9, "kind": "hdd"}],
            "tags": {"x": "y"},
            "root": {"sizeGiB": 3},
            "free": [{"any": 1}],
        },
        "spec",
    )

    assert spec == Spec(
        name="a",
        count=2,
        ratio=1.0,
        on=True,
        port="http",
        disks=(Disk(size=8), Disk(size=9, kind="hdd")),
        tags={"x": "y"},
        root=Disk(size=3),
        free=[{"any": 1}],
    )
    assert isinstance(spec.ratio, float)


def test_what_is_not_known_is_passed_over_and_defaults_are_filled_in() -> None:
    assert decode(Spec, {"name": "a", "newer": {"x": 1}, "count": None}, "spec") == Spec(name="a")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "spec.name: expected text, found nothing"),
        ({"name": 1}, "spec.name: expected text, found 1"),
        ({"name": "a", "count": True}, "spec.count: expected a whole number, found True"),
        ({"name": "a", "count": 1.5}, "spec.count: expected a whole number, found 1.5"),
        ({"name": "a", "on": 1}, "spec.on: expected true or false, found 1"),
        ({"name": "a", "ratio": "1"}, "spec.ratio: expected a number, found '1'"),
        ({"name": "a", "port": [1]}, "spec.port: expected text, found [1]"),
        ({"name": "a", "disks": {}}, "spec.disks: expected a list, found {}"),
        ({"name": "a", "disks": ["x"]}, "spec.disks[0]: expected an object, found 'x'"),
        (
            {"name": "a", "disks": [{"sizeGiB": 1}, {}]},
            "spec.disks[1].sizeGiB: expected a whole number, found nothing",
        ),
        (
            {"name": "a", "root": {"sizeGiB": 1, "kind": "tape"}},
            "spec.root.kind: expected one of 'ssd', 'hdd', found 'tape'",
        ),
        ({"name": "a", "tags": {"x": 1}}, "spec.tags.x: expected text, found 1"),
        ([], "spec: expected an object, found []"),
    ],
)
def test_wrong_values_are_named_by_their_path(data: Any, message: str) -> None:
    with pytest.raises(DecodingError) as caught:
        decode(Spec, data, "spec")
    assert str(caught.value) == message


def test_long_values_are_cut() -> None:
    with pytest.raises(DecodingError) as caught:
        decode(Spec, {"name": ["x" * 1000]}, "spec")
    assert len(str(caught.value)) < 150


def test_empty_status_fields_are_removed() -> None:
    @dataclass(frozen=True)
    class Status:
        server: str | None = field(default=None, metadata={"json": "serverID"})
        boots: int | None = None
        disks: tuple[Disk, ...] = ()

    assert encode_status(Status(boots=0, disks=(Disk(size=1),))) == {
        "serverID": None,
        "boots": 0,
        "disks": [{"sizeGiB": 1, "kind": "ssd"}],
    }
    assert encode_status(None) == {}
    with pytest.raises(TypeError, match="generated Status class"):
        encode_status({"boots": 1})
