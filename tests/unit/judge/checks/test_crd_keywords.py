"""Keywords of CRDs are judged as by the API server; a test in ``tests/realapi`` asks it."""

from __future__ import annotations

import pytest

from tests.crd_keywords import REFUSED, TAKEN, make_crd, make_crd_with_empty_label
from tests.realapi.crd_mutants import Document
from tests.realapi.crd_verdicts import find_messages


@pytest.mark.parametrize("properties", TAKEN, ids=str)
def test_keywords_are_taken(properties: Document) -> None:
    assert find_messages(make_crd(properties).document) == ()


@pytest.mark.parametrize("properties", REFUSED, ids=str)
def test_keywords_are_refused(properties: Document) -> None:
    assert find_messages(make_crd(properties).document)


def test_labels_without_values_are_taken() -> None:
    assert find_messages(make_crd_with_empty_label().document) == ()
