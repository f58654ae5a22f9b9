"""What the page of a lab hides: secrets in objects, in what objects wait for, and in logs."""

from __future__ import annotations

import base64
import json

import pytest

from capsmith.clusters.hiding import HIDDEN, KeyHider, hide_in_line, hide_values
from capsmith.clusters.lab.page.model.details import format_yaml
from capsmith.clusters.lab.page.model.summary import summarize
from tests.browser.objects import JSON, condition, make

KEY = """-----BEGIN RSA PRIVATE KEY-----
DEK-Info: AES-256-CBC,0

s3cret
-----END RSA PRIVATE KEY-----"""
ENCODED = base64.b64encode(KEY.replace("s3cret", "something").encode()).decode()


def test_secret_values_are_hidden() -> None:
    obj = make(
        "KubeadmConfig",
        "one",
        spec={
            "joinConfiguration": {"discovery": {"token": "abcdef.0123456789abcdef"}},
            "files": [{"path": "/a", "content": "key material"}],
            "users": [{"name": "x", "passwd": "hash"}],
            "note": "join with abcdef.0123456789abcdef",
            "credentialsRef": {"name": "identity"},
            "tokenSecretName": "named",
        },
        annotations={"kubectl.kubernetes.io/last-applied-configuration": "all of it"},
    )
    text = format_yaml(obj)
    for secret in ("0123456789abcdef", "key material", "hash", "all of it"):
        assert secret not in text
    assert "identity" in text
    assert "named" in text
    whole = {"apiVersion": "v1", "kind": "Secret", "data": {"value": "c2VjcmV0"}}
    assert "c2VjcmV0" not in format_yaml(whole)


@pytest.mark.parametrize(
    ("spec", "shown"),
    [
        ({"config": f"before\n{KEY}\nafter"}, ["before", "after"]),
        ({"config": f"before {KEY[:-40]}"}, ["before"]),
        ({"command": "curl -H 'Authorization: Bearer s3cret' host"}, ["curl", "host"]),
        ({"commands": ["export ACCESS_TOKEN=s3cret && run"]}, ["export ACCESS_TOKEN", "run"]),
        ({"json": '{"token": "s3cret", "port": 1}'}, ["port"]),
        ({"json": json.dumps({"a": json.dumps({"password": "s3cret", "port": 1})})}, ["port"]),
        ({"env": [{"name": "DB_PASSWORD", "value": "s3cret"}]}, ["DB_PASSWORD"]),
        ({"env": [{"name": "MY_SECRET", "value": "s3cret"}]}, ["MY_SECRET"]),
        ({"env": [{"name": "TOKEN_FILE", "value": "/a/file"}]}, ["/a/file"]),
        ({"env": [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "x", "key": "shown"}}}]},
         ["shown"]),
        ({"variables": [{"name": "token", "value": {"parts": ["s3cret"]}}]}, ["parts"]),
        ({"credentials": {"user": "s3cret", "more": {"pin": ["s3cret"]}}}, ["pin"]),
        ({"credentials": {"secretRef": {"name": "named", "key": "shown"}, "namespace": "there"}},
         ["named", "shown", "there"]),
        ({"api-key": "s3cret", "apiKeyName": "named"}, ["named"]),
        ({"kubeconfig": "user:\n  client-key-data: s3cret\n  other: shown"}, ["shown"]),
    ],
)  # fmt: skip
def test_no_secret_of_an_object_is_shown(spec: JSON, shown: list[str]) -> None:
    text = format_yaml(make("AcmeMachine", "one", spec=spec))
    assert "s3cret" not in text
    assert all(each in text for each in shown)


def test_numbers_and_keys_in_base64_are_hidden() -> None:
    text = format_yaml(make("AcmeMachine", "one", spec={"password": 123456, "key": ENCODED}))
    assert "123456" not in text
    assert ENCODED[40:80] not in text


@pytest.mark.parametrize("secret", ["abcdef.0123456789abcdef", f"password={'s3cret' * 3}", KEY])
def test_what_objects_wait_for_has_no_secrets(secret: str) -> None:
    conditions = [condition("Ready", "False", f"join with {secret}")]
    waiting = make("Machine", "a", status={"phase": "Pending", "conditions": conditions})
    conditions = [condition("Deleting", "True", f"drain with {secret}")]
    deleting = make("Machine", "b", status={"conditions": conditions}, deletionTimestamp="now")
    for obj in (waiting, deleting):
        found = summarize(obj).waiting
        assert " with " in found
        assert HIDDEN in found
        assert secret[-20:] not in found


def test_a_private_key_is_hidden_in_all_its_lines() -> None:
    log, key = KeyHider(), KEY.splitlines()
    first = log.hide(["before", f"key: {key[0]}", *key[1:3]])
    second = log.hide([*key[3:], f"end {KEY[:31]}again", "s3cret"])
    third = log.hide([f"{key[-1]} behind", "after"])
    shown = [hide_in_line(line) for line in [*first, *second, *third]]
    assert shown == [
        "before",
        f"key: {HIDDEN}",
        *[HIDDEN] * 4,
        f"end {HIDDEN}",
        HIDDEN,
        f"{HIDDEN} behind",
        "after",
    ]


def test_a_private_key_without_an_end_does_not_hide_all_that_follows() -> None:
    hidden = KeyHider().hide([KEY.splitlines()[0], *["line"] * 300])
    assert hidden.count(HIDDEN) == 200
    assert hidden[-1] == "line"


@pytest.mark.parametrize(
    "line",
    [
        "Authorization: Bearer s3cretvalue",
        'login password="s3cretvalue" failed',
        "-----BEGIN RSA PRIVATE KEY-----s3cretvalue-----END RSA PRIVATE KEY-----",
        "token: s3cretvalue",
        "token: Bearer s3cretvalue",
        "DB_PASSWORD=s3cretvalue",
        "token='s3cretvalue",
    ],
)
def test_secrets_in_log_lines_are_hidden(line: str) -> None:
    hidden = hide_in_line(line)
    assert "s3cretvalue" not in hidden
    assert HIDDEN in hidden


def test_known_values_are_replaced_wherever_they_occur_unless_they_are_short() -> None:
    line = "login hunter2! hunter2!! failed: ok"
    assert hide_values(line, {"hunter2!", "hunter2!!", "ok"}) == (
        f"login {HIDDEN} {HIDDEN} failed: ok"
    )
