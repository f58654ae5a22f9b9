"""Values of credentials are replaced by their keys in messages, and nothing else is."""

from __future__ import annotations

import contextvars
import json
from urllib.parse import quote

import pytest

from capsmith_runtime.kube.hidden_values import hide_values, redact

KEY = "-----BEGIN KEY-----\nq\"'\\é\n-----END KEY-----\n"


def redacted(text: str, *values: dict[str, str]) -> str:
    """Return the redacted text in a context of its own."""

    def run() -> str:
        hide_values(*values)
        return redact(text)

    return contextvars.copy_context().run(run)


@pytest.mark.parametrize(
    "form", [str, str.strip, repr, json.dumps, lambda value: quote(value.strip(), safe="")]
)
@pytest.mark.parametrize("value", ["correct-horse", " correct horse\n", KEY])
def test_each_form_of_a_value_is_hidden(value: str, form: type) -> None:
    text = redacted(f"cannot send {form(value)} to the cloud", {"region": "north", "key": value})
    assert "(hidden: key)" in text
    assert value.strip()[:9] not in text


@pytest.mark.parametrize("value", ["", "   \n", "admin", "x" * 100_000])
def test_values_that_are_words_or_no_part_of_a_message_are_kept(value: str) -> None:
    message = f"the user admin {value} is unknown"
    assert redacted(message, {"user": value}) == message


def test_values_of_all_identities_of_a_chain_are_hidden() -> None:
    assert redacted("role-secret user-secret", {"a": "role-secret"}, {"b": "user-secret"}) == (
        "(hidden: a) (hidden: b)"
    )


def test_values_of_another_context_are_kept() -> None:
    redacted("", {"token": "is not provisioned"})
    assert redact("the machine is not provisioned") == "the machine is not provisioned"
    assert redacted("the machine is not provisioned") == "the machine is not provisioned"
