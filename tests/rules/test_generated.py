"""What is generated keeps every checked rule, whatever a breach weighs."""

from __future__ import annotations

import pytest

from capsmith import pipeline
from tests.golden.cases import Case, cases


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_what_is_generated_breaks_no_rule(case: Case) -> None:
    provider = pipeline.load(case.spec).provider
    assert provider is not None
    assert pipeline.conformance(pipeline.build(provider), provider) == ()
