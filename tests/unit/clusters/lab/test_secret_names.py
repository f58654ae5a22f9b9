"""Texts about credentials get the names of the Secrets that objects refer to."""

from __future__ import annotations

from typing import Any

import pytest

from capsmith.clusters.lab.secret_names import Holder, find_secret_names

REFUSED = "401 Unauthorized: the cloud refuses the credentials"


def of(spec: Any, namespace: str = "default") -> dict[str, Any]:
    return {"metadata": {"namespace": namespace}, "spec": spec, "data": {"secret": {"name": "no"}}}


def add_secret_names(text: str, *holders: Holder) -> str:
    return f"{text}{find_secret_names(text, holders)}"


def add(text: str, *specs: Any) -> str:
    """Return a text with the Secrets of objects that are no identities."""
    return add_secret_names(text, *(Holder(of(spec)) for spec in specs))


@pytest.mark.parametrize(
    "text",
    [
        REFUSED,
        "Ready (SessionNotOpened): HTTPError: 401 Client Error: Unauthorized for url: acme",
        "Ready (SessionNotOpened): HTTP 401",
        "Ready (SessionNotOpened): the server answers with status code 401",
        "the cloud refuses the credentials",
    ],
)
@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ({"identityRef": {"kind": "Secret", "name": "login"}}, "default/login"),
        ({"credentialsRef": {"name": "login"}}, "default/login"),
        ({"credentialsSecretRef": {"name": "login"}}, "default/login"),
        ({"sshKeySecretRef": {"name": "ssh"}, "credentialsRef": {"name": "a", "namespace": "acme"}},
         "acme/a"),
    ],
)  # fmt: skip
def test_a_refusal_names_the_secret(text: str, spec: Any, named: str) -> None:
    assert add(text, {}, spec) == f"{text} (Secret {named})"


def test_a_refusal_names_the_secret_of_an_identity() -> None:
    machine = Holder(of({"sshKeySecretRef": {"name": "ssh"}}))
    identity = Holder(of({"secretRef": {"name": "login"}}), is_identity=True)
    assert add_secret_names(REFUSED, machine, identity) == f"{REFUSED} (Secret default/login)"


MISSING = "the Secret of this object has no key"


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ({"secretRef": {"name": "login"}}, "default/login"),
        ({"secretRef": {"name": "login", "namespace": "acme"}}, "acme/login"),
        ({"users": [{"passwdFrom": {"secret": {"name": "p"}}}]}, "default/p"),
        ({"files": [{"contentFrom": {"secret": {"name": name}}} for name in "abcdab"]},
         "default/a, default/b, default/c"),
    ],
)  # fmt: skip
def test_an_error_about_a_secret_names_it(spec: Any, named: str) -> None:
    assert add(MISSING, {}, spec) == f"{MISSING} (Secret {named})"


@pytest.mark.parametrize("text", [REFUSED, MISSING])
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
def test_nothing_is_added_where_no_secret_is_named(spec: Any, text: str) -> None:
    assert add(text, spec) == text


@pytest.mark.parametrize("key", ["secretRef", "sshKeySecretRef", "secret"])
def test_a_refusal_is_not_about_other_secrets_of_an_object(key: str) -> None:
    assert add(REFUSED, {key: {"name": "ssh"}}) == REFUSED


@pytest.mark.parametrize(
    "text",
    [
        "Ready (Cloning): task-117",
        "Ready (CloningFailed): task 401 failed",
        "Ready: bootstrap.dataSecretName of Machine data is not set",
        "Ready (SecretNotFound): Secret acme/login does not exist",
        'BootstrapConfigReady: secrets "other" not found',
        "Ready (DataSecretNameTaken): Secret w1 belongs to another object",
        "Ready (SecretNotFound): Secret w1 does not exist",
        "Ready (CertificatesNotUsable): Secret c1-ca is missing and must be restored",
        "Ready (CertificatesNotUsable): Secret c1-ca cannot be used: no key",
        "Ready (KubeconfigNotUsable): Secret c1-kubeconfig cannot be used: 401 Unauthorized",
    ],
)
def test_texts_that_name_a_secret_or_are_about_something_else_stay(text: str) -> None:
    spec = {"credentialsRef": {"name": "login"}, "secretRef": {"name": "file"}}
    assert add(text, spec) == text


@pytest.mark.parametrize("text", ['secrets "two" not found', "Secret two does not exist"])
def test_a_secret_without_its_namespace_gets_it(text: str) -> None:
    spec = {"files": [{"secret": {"name": "one"}}, {"secret": {"name": "two"}}]}
    assert add(text, {"secretRef": {"name": "login"}}, spec) == f"{text} (Secret default/two)"


def test_the_identity_of_a_whole_cluster_has_its_secret_beside_the_manager() -> None:
    identity = Holder(of({"secretRef": {"name": "login"}}, ""), is_identity=True)
    named = add_secret_names(REFUSED, identity)
    assert named == f"{REFUSED} (Secret login in the manager's namespace)"
