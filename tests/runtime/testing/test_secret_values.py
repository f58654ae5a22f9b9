"""Secret values are found in logs, statuses and events; other values are not secret."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import yaml

from capsmith_runtime.testing.manifests import Manifests
from capsmith_runtime.testing.secret_values import (
    SecretValueDetector,
    find_secret_line,
    find_secret_values,
)

VALUES = {"correct-horse": "token of Secret acme"}


def test_values_of_secret_keys_are_secret(tmp_path: Path) -> None:
    data = {
        "token": "correct-horse",
        "password": "battery-staple",
        "apiKey": "an-api-key",
        "accessKeyID": "AKIAEXAMPLE",
        "user": "administrator",
        "url": "https://cloud.example.com",
        "secretName": "credentials",
        "pin-token": "1234",
    }
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "acme"}}
    (tmp_path / "samples").mkdir()
    (tmp_path / "samples" / "a.yaml").write_text(yaml.safe_dump({**secret, "stringData": data}))
    found = find_secret_values(Manifests([tmp_path]))
    assert set(found) == {"correct-horse", "battery-staple", "an-api-key"}


@pytest.mark.parametrize(
    "obj",
    [
        {"kind": "AcmeMachine", "status": {"conditions": [{"message": "no correct-horse"}]}},
        {"kind": "Event", "note": "login with correct-horse failed"},
    ],
)
def test_a_value_in_an_object_is_found(obj: dict[str, object]) -> None:
    detector = SecretValueDetector(VALUES)
    detector.look_into([{**obj, "metadata": {"name": "m"}}])
    with pytest.raises(AssertionError, match=r"token of Secret acme is in .*m: .*\*{3}") as caught:
        detector.check()
    assert "correct-horse" not in str(caught.value)


def test_a_value_in_the_log_is_found() -> None:
    with SecretValueDetector(VALUES) as detector:
        logging.getLogger("acme").info("login", extra={"values": {"token": "correct-horse"}})
    with pytest.raises(AssertionError, match="is in the log"):
        detector.check()


def test_secrets_and_specs_may_have_the_value() -> None:
    detector = SecretValueDetector(VALUES)
    secret = {"kind": "Secret", "metadata": {"name": "s"}, "data": {"token": "correct-horse"}}
    detector.look_into([secret, {"kind": "AcmeMachine", "metadata": {"name": "m"}, "spec": {}}])
    detector.check()


def test_a_line_of_a_key_is_found_however_it_is_quoted() -> None:
    key = "-----BEGIN PRIVATE KEY-----\nabc\nlonger\n-----END PRIVATE KEY-----\n"
    assert find_secret_line(key) in repr(key)
    assert find_secret_line(key) == "longer"
