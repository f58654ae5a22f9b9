"""Certificates and kubeconfigs of clusters: what users bring is respected."""

from __future__ import annotations

import pytest
import trustme

from capsmith_runtime.controlplane.secrets.certificates import (
    KeyPair,
    create_authority,
    is_signed_by,
    sign_client,
)
from capsmith_runtime.workload import kubeconfig
from tests.realapi.cluster_secrets.conftest import Run
from tests.realapi.secret_keeping import LABEL, NOW, Keeping, days

TLS = "kubernetes.io/tls"
OURS = "cluster.x-k8s.io/secret"


def tls(pair: KeyPair) -> dict[str, bytes]:
    """Return the data of a Secret with certificate and key."""
    return {"tls.crt": pair.certificate, "tls.key": pair.key}


def test_authorities_of_users_are_used_and_left_alone(run: Run) -> None:
    """Proves: CP-23, SEC-03."""

    async def test(kept: Keeping) -> None:
        authority = trustme.CA()
        certificate = authority.cert_pem.bytes()
        pair = KeyPair(certificate, authority.private_key_pem.bytes())
        kept.bring("ca", TLS, tls(pair))
        before = kept.get("ca")

        assert (await kept.ensure()).waiting is None

        assert kept.get("ca") == before
        assert "ownerReferences" not in before["metadata"]
        assert kept.access().authority == certificate
        assert is_signed_by(kept.access().certificate, certificate)
        assert kept.get("etcd")["type"] == OURS

    run(test)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"tls.crt": create_authority("a", NOW).certificate}, "it has no tls.key"),
        ({}, "no PEM certificate found"),
        (
            {
                "tls.crt": create_authority("a", NOW).certificate,
                "tls.key": create_authority("b", NOW).key,
            },
            "the key does not match the certificate",
        ),
    ],
    ids=["no key", "nothing", "two halves"],
)
def test_incomplete_secrets_of_users_are_reported(
    run: Run, data: dict[str, bytes], message: str
) -> None:
    """Proves: SEC-03."""

    async def test(kept: Keeping) -> None:
        kept.bring("ca", "Opaque", data)
        await kept.watched("ca")
        before = kept.get("ca")

        waiting = (await kept.ensure()).waiting

        assert waiting is not None
        assert waiting.message == f"Secret {kept.name}-ca cannot be used: {message}"
        assert kept.get("ca") == before
        assert kept.find("kubeconfig") is None

    run(test)


def test_secrets_without_the_label_are_reported(run: Run) -> None:
    """Proves: SEC-03."""

    async def test(kept: Keeping) -> None:
        pair = create_authority("own", NOW)
        kept.bring("ca", TLS, tls(pair), label=False)

        waiting = (await kept.ensure()).waiting

        assert waiting is not None
        assert f"it has no label {LABEL}={kept.name}" in waiting.message
        assert kept.data("ca", "tls.crt") == pair.certificate

    run(test)


def test_the_key_of_an_external_etcd_is_not_needed(run: Run) -> None:
    """Proves: SEC-03."""

    async def test(kept: Keeping) -> None:
        pair = create_authority("etcd", NOW)
        kept.bring("etcd", "Opaque", {"tls.crt": pair.certificate})
        await kept.watched("etcd")
        assert (await kept.ensure()).waiting is not None

        client = sign_client(pair, "apiserver", [], NOW)
        kept.bring("apiserver-etcd-client", TLS, tls(client))
        assert (await kept.ensure()).waiting is None

    run(test)


def test_a_kubeconfig_of_users_is_never_written(run: Run) -> None:
    """Proves: SEC-01."""

    async def test(kept: Keeping) -> None:
        pair = create_authority("other", NOW)
        client = sign_client(pair, "me", [], NOW)
        access = kubeconfig.Access(
            server="https://other.test",
            authority=pair.certificate,
            certificate=client.certificate,
            key=client.key,
        )
        kept.bring("kubeconfig", "Opaque", {"value": kubeconfig.render("c", access)})
        before = kept.get("kubeconfig")

        report = await kept.ensure()
        assert (report.waiting, report.renewal) == (None, None)
        kept.now = NOW + days(300)
        report = await kept.ensure()
        assert report.waiting is None
        assert f"The certificate in Secret {kept.name}-kubeconfig ends at" in report.message
        kept.now = NOW + days(366)
        waiting = (await kept.ensure()).waiting

        assert waiting is not None
        assert "its certificate has expired" in waiting.message
        assert kept.get("kubeconfig") == before

    run(test)


def test_another_controller_keeps_what_is_its_own(run: Run) -> None:
    async def test(kept: Keeping) -> None:
        other = {
            "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2",
            "kind": "KubeadmConfig",
            "name": "x",
            "uid": "y",
            "controller": True,
        }
        await kept.ensure()
        kept.api.patch(kept.get("ca"), {"metadata": {"ownerReferences": [other]}})
        await kept.watched("ca")

        assert (await kept.ensure()).waiting is None

        assert kept.get("ca")["metadata"]["ownerReferences"] == [other]

    run(test)
