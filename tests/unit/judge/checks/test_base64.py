"""A caBundle is base64 where Go can decode it."""

from __future__ import annotations

import pytest

from capsmith.judge.checks.apiextensions.definition import is_base64


@pytest.mark.parametrize("text", ["", "Zm9v", "Zm8=", "Zg==", "Zm\n9v\r\n", "+/+/"])
def test_base64_is_accepted(text: str) -> None:
    assert is_base64(text)


@pytest.mark.parametrize("text", ["Zm9", "Zm9v=", "Zm9vZg===", "Zm9v Zg==", "Zm-_", "====", "Zé9v"])
def test_other_texts_are_refused(text: str) -> None:
    assert not is_base64(text)
