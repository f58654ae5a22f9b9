"""Texts that any user may write into a duration or a version."""

from __future__ import annotations

import pytest

from capsmith_runtime.contract.kubernetes_version import count_versions
from capsmith_runtime.contract.times import parse_seconds

DIGITS = "9" * 1_000_000


@pytest.mark.parametrize(
    "text",
    [
        # Each of these took hours, during which no other thread of the manager ran.
        DIGITS,
        f"1h{DIGITS}",
        f".{DIGITS}",
        f"{DIGITS}.{DIGITS}x",
        "1h" * 500_000 + "x",
        # These are no durations, because Go knows no other digits.
        "\N{ARABIC-INDIC DIGIT ONE}s",
        "1s\n",
        "",
    ],
    ids=lambda text: text[:6],
)
def test_a_long_text_that_is_no_duration_is_found_invalid(text: str) -> None:
    assert parse_seconds(text) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1h30m", 5400), ("1.5h", 5400), (".5m", 30), ("90.s", 90), ("1500ms", 1), ("0s", 0)],
)
def test_a_duration_is_rounded_down_to_seconds(text: str, seconds: int) -> None:
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize("invalid", [f"v1.{DIGITS}.0", f"v1.2.3-{DIGITS}", "v1.2"])
def test_a_version_with_too_many_digits_does_not_hide_the_others(invalid: str) -> None:
    versions = ["v1.10.0", invalid, "v1.9.0", "v1.10.0"]
    assert count_versions(versions) == (("v1.9.0", 1), ("v1.10.0", 2))
