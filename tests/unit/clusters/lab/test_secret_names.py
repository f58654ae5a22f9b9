"""Texts about credentials get the names of the Secrets that objects refer to."""

from __future__ import annotations

from typing import Any

import pytest

from capsmith.clusters.lab.secret_names import add_secret_names

REFUSED = "401 Unauthorized: the cloud refuses the credentials"


def of(spec: Any, namespace: str = "default") -> dict[str, Any]:
    return {"metadata": {"namespace": namespace}, "spec": spec, "data": {"secret": {"name": "no"}}}


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ({"identityRef": {"kind": "Secret", "name": "login"}}, "default/login"),
        ({"secretRef": {"name": "login"}}, "default/login"),
        ({"secretRef": {"name": "login", "namespace": "acme"}}, "acme/login"),
        ({"credentialsRef": {"name": "login"}}, "default/login"),
        ({"users": [{"passwdFrom": {"secret": {"name": "p"}}}]}, "default/p"),
        ({"files": [{"contentFrom": {"secret": {"name": name}}} for name in "abcdab"]},
         "default/a, default/b, default/c"),
    ],
)  # fmt: skip
def test_a_refusal_names_the_secret(spec: Any, named: str) -> None:
    assert add_secret_names(REFUSED, [of({}), of(spec)]) == f"{REFUSED} (Secret {named})"


@pytest.mark.parametrize(
    "spec",
    [
        {},
        "no mapping",
        {"identityRef": {"kind": "AcmeIdentity", "name": "login"}},
        {"secretRef": {"name": ["login"]}},
        {"bootstrap": {"dataSecretName": "login"}},
    ],
)
def test_nothing_is_added_where_no_secret_is_named(spec: Any) -> None:
    assert add_secret_names(REFUSED, [of(spec)]) == REFUSED


@pytest.mark.parametrize(
    "text",
    [
        "Ready (Cloning): task-117",
        "Ready: bootstrap.dataSecretName of Machine data is not set",
        "Ready (SecretNotFound): Secret acme/login does not exist",
        'BootstrapConfigReady: secrets "other" not found',
    ],
)
def test_texts_that_name_a_secret_or_are_about_something_else_stay(text: str) -> None:
    assert add_secret_names(text, [of({"secretRef": {"name": "login"}})]) == text


def test_a_secret_without_its_namespace_gets_it() -> None:
    spec = {"files": [{"secret": {"name": "one"}}, {"secret": {"name": "two"}}]}
    text = 'secrets "two" not found'
    assert add_secret_names(text, [of(spec)]) == f"{text} (Secret default/two)"


def test_the_identity_of_a_whole_cluster_has_its_secret_beside_the_manager() -> None:
    named = add_secret_names(REFUSED, [of({"secretRef": {"name": "login"}}, "")])
    assert named == f"{REFUSED} (Secret login in the manager's namespace)"
