"""How long the names of CRDs may be."""

from __future__ import annotations

import pytest

from tests.unit.provider.described import BASE, resolved

LONGEST = 253 - len("acmemachinetemplates.")


@pytest.mark.parametrize("length", [LONGEST, LONGEST + 1])
def test_the_longest_name_is_that_of_a_template(length: int) -> None:
    """Proves: CRD-02."""
    domain = ".example.com"
    labels = f"{'a' * 60}." * 4
    group = labels[: length - len(domain)] + domain

    made = resolved({**BASE, "groups": {"infrastructure": group}})

    assert len(group) == length
    assert (made is not None) is (length == LONGEST)
