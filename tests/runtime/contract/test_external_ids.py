"""External ids, in their long and their short form."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from capsmith_runtime.contract import external_id
from capsmith_runtime.infrastructure import InfraMachineScope, label_value
from capsmith_runtime.testing import infrastructure as testing

LABEL = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?")


@given(st.text(min_size=1, max_size=300), st.text(min_size=1, max_size=300))
def test_a_short_id_is_a_dns_label(one: str, other: str) -> None:
    short = external_id.shorten(one)

    assert len(short) == external_id.SHORT_CHARACTERS <= 63
    assert LABEL.fullmatch(short)
    assert label_value(short) == short
    assert (short == external_id.shorten(other)) is (one == other)


def test_a_short_id_never_changes() -> None:
    """Resources are found by it: the expected value may not be adapted to other code."""
    known = "c04a4a96b4b9e4986e2a3f85aa38a96b"

    assert external_id.shorten("m1.0b4f5ad2-1d8f-4a0e-9f5e-1c2d3e4f5a6b") == known


def test_scopes_have_a_short_id() -> None:
    machine: InfraMachineScope[Any] = testing.infra_machine({})

    assert machine.short_id == external_id.shorten(machine.external_id)
