"""Flags of authors, as operators set them and as code reads them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from capsmith_runtime import features, flags
from capsmith_runtime.features import FeatureGate
from capsmith_runtime.flags import (
    AuthorFlags,
    BooleanFlag,
    DurationFlag,
    IntegerFlag,
    NumberFlag,
    StringFlag,
)
from capsmith_runtime.options import parse


@pytest.fixture(autouse=True)
def declared() -> Iterator[None]:
    known_flags, known_gates = dict(flags._flags), dict(features._gates)
    yield
    flags._flags.clear()
    flags._flags.update(known_flags)
    features._gates.clear()
    features._gates.update(known_gates)


@pytest.fixture
def extra(declared: None) -> AuthorFlags:
    return AuthorFlags(
        "flags of Acme",
        (
            IntegerFlag("page-size", default=100, minimum=1, maximum=500, description="At 100%."),
            NumberFlag("ratio", default=0.5, maximum=1.0),
            StringFlag("mode", default="uefi", choices=("uefi", "bios")),
            DurationFlag("ttl", default=90.0),
            BooleanFlag("dry-run"),
        ),
    )


def _values(extra: AuthorFlags) -> list[object]:
    return [flag.value for flag in extra.flags]


def test_flags_have_their_default_unless_the_command_line_names_them(extra: AuthorFlags) -> None:
    parse([], ["infrastructure"], [extra])
    assert _values(extra) == [100, 0.5, "uefi", 90.0, False]
    given = ["--page-size=500", "--ratio=1", "--mode=bios", "--ttl=1h", "--dry-run"]
    options = parse(given, ["infrastructure"], [extra])
    assert _values(extra) == [500, 1.0, "bios", 3600.0, True]
    assert options.extra["author"] == {
        "page-size": 500,
        "ratio": 1.0,
        "mode": "bios",
        "ttl": 3600.0,
        "dry-run": True,
    }


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--page-size=0", "less than 1: '0'"),
        ("--page-size=501", "greater than 500: '501'"),
        ("--page-size=many", "invalid literal"),
        ("--ratio=nan", "not a finite number: 'nan'"),
        ("--mode=other", "not one of uefi, bios: 'other'"),
        ("--ttl=10", "not a duration"),
        ("--dry-run=yes", "neither true nor false: 'yes'"),
    ],
)
def test_other_values_end_the_manager_with_the_reason(
    extra: AuthorFlags, argument: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse([argument], ["infrastructure"], [extra])
    assert message in capsys.readouterr().err
    assert _values(extra) == [100, 0.5, "uefi", 90.0, False]


def test_help_shows_flags_and_gates(extra: AuthorFlags, capsys: pytest.CaptureFixture[str]) -> None:
    FeatureGate("FastBoot", default=True, description="Start from snapshots, 50% faster.")
    with pytest.raises(SystemExit):
        parse(["--help"], ["infrastructure"], [extra])
    shown = " ".join(capsys.readouterr().out.split())
    for text in (
        "flags of Acme:",
        "--page-size INTEGER At 100%. (default: 100)",
        "--mode STRING (default: uefi) (one of uefi, bios)",
        "--ttl DURATION (default: 90s)",
        "--dry-run [BOOLEAN] (default: false)",
        "FastBoot=true|false (default=true) Start from snapshots, 50% faster.",
    ):
        assert text in shown


def test_a_name_is_declared_once(extra: AuthorFlags) -> None:
    with pytest.raises(ValueError, match="declared twice: 'ttl'"):
        DurationFlag("ttl", default=1.0)


def test_a_test_sets_a_value_for_a_block(extra: AuthorFlags) -> None:
    flag = IntegerFlag("size", default=1)
    with flag.set_for_test(2):
        assert flag.value == 2
    assert flag.value == 1


def test_conformance_tests_try_choices_and_bounds(extra: AuthorFlags) -> None:
    tried = {flag.name: list(flag.list_other_values()) for flag in extra.flags}
    assert tried == {
        "page-size": [1, 500],
        "ratio": [1.0],
        "mode": ["bios"],
        "ttl": [],
        "dry-run": [True],
    }
