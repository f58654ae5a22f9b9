"""Certificates and kubeconfigs of clusters: made, renewed, respected, restored."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable

import pytest
import trustme
from capsmith_generated.contract.model import Endpoint
from capsmith_generated.workload import kubeconfig
from capsmith_generated.workload.certificates import (
    KeyPair,
    is_signed_by,
    new_authority,
    sign_client,
    validity_of,
)

from tests.e2e.harness.components import ApiServer
from tests.realapi.secret_keeping import (
    LABEL,
    NAMESPACE,
    NOW,
    SUFFIXES,
    Keeping,
    days,
    keeping,
)

TLS = "kubernetes.io/tls"
OURS = "cluster.x-k8s.io/secret"
NUMBERS = itertools.count(1)
Run = Callable[[Callable[[Keeping], Awaitable[None]]], None]


def tls(pair: KeyPair) -> dict[str, bytes]:
    """The data of a Secret with certificate and key."""
    return {"tls.crt": pair.certificate, "tls.key": pair.key}


@pytest.fixture
def run(api_server: ApiServer) -> Run:
    """Runs a test with a cluster of its own."""

    def running(test: Callable[[Keeping], Awaitable[None]]) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(60), keeping(api_server, f"c-{next(NUMBERS)}") as kept:
                await test(kept)

        asyncio.run(bounded())

    return running


def test_everything_is_made_once(run: Run) -> None:
    """Proves: CP-22, CP-23, SEC-01, SEC-03."""

    async def test(kept: Keeping) -> None:
        report = await kept.ensure()

        assert report.waiting is None
        assert report.renewal == validity_of(kept.access().certificate).half
        for suffix in SUFFIXES:
            secret = kept.get(suffix)
            assert secret["type"] == OURS
            assert secret["metadata"]["labels"] == {LABEL: kept.name}
            (owner,) = secret["metadata"]["ownerReferences"]
            assert (owner["name"], owner["uid"]) == (f"{kept.name}-cp", kept.uid)
            assert owner["controller"]
            keys = {"value"} if suffix == "kubeconfig" else {"tls.crt", "tls.key"}
            assert set(secret["data"]) == keys
        assert await kept.requests() == 0

    run(test)


def test_the_kubeconfig_leads_to_the_endpoint(run: Run) -> None:
    """Proves: CP-22, SEC-01."""

    async def test(kept: Keeping) -> None:
        await kept.ensure()

        access = kept.access()
        assert access.server == "https://10.0.0.1:6443"
        assert access.authority == kept.data("ca", "tls.crt")
        assert is_signed_by(access.certificate, access.authority)
        assert validity_of(access.certificate).end == NOW + days(365)

    run(test)


def test_the_kubeconfig_waits_for_the_endpoint(run: Run) -> None:
    async def test(kept: Keeping) -> None:
        kept.endpoint = None
        assert (await kept.ensure()).waiting is None
        assert kept.find("kubeconfig") is None

        kept.endpoint = Endpoint("fd00::1", 443)
        await kept.ensure()
        assert kept.access().server == "https://[fd00::1]:443"

    run(test)


def test_two_at_a_time_make_one_authority(run: Run) -> None:
    """Proves: SEC-03."""

    async def test(kept: Keeping) -> None:
        await asyncio.gather(*(kept.ensure() for _ in range(5)))
        await kept.ensure()

        assert kept.access().authority == kept.data("ca", "tls.crt")
        assert is_signed_by(kept.access().certificate, kept.data("ca", "tls.crt"))

    run(test)


def test_the_kubeconfig_is_renewed_at_half_of_its_life(run: Run) -> None:
    """Proves: SEC-01."""

    async def test(kept: Keeping) -> None:
        first = (await kept.ensure()).renewal
        assert first is not None
        content = kept.data("kubeconfig", "value")

        kept.now = first - days(1)
        report = await kept.ensure()
        assert kept.data("kubeconfig", "value") == content
        assert report.seconds_to_renewal(within=600.0) is None
        assert report.seconds_to_renewal(within=2 * 86400.0) == 86400.0
        assert report.seconds_to_renewal(within=0.0) == 86400.0

        kept.now = first
        report = await kept.ensure()
        assert kept.data("kubeconfig", "value") != content
        assert validity_of(kept.access().certificate).end == first + days(365)
        assert report.renewal is not None
        assert report.renewal > first + days(182)
        assert kept.access().authority == kept.data("ca", "tls.crt")

    run(test)


def test_nothing_is_renewed_that_would_end_no_later(run: Run) -> None:
    async def test(kept: Keeping) -> None:
        await kept.ensure()
        end = validity_of(kept.data("ca", "tls.crt")).end

        kept.now = end - days(40)
        report = await kept.ensure()
        assert report.renewal is None
        assert validity_of(kept.access().certificate).end == end
        assert report.message == (
            f"The certificate in Secret {kept.name}-ca ends at {end:%Y-%m-%dT%H:%M:%SZ}; "
            f"The certificate in Secret {kept.name}-etcd ends at {end:%Y-%m-%dT%H:%M:%SZ}; "
            f"The certificate in Secret {kept.name}-proxy ends at {end:%Y-%m-%dT%H:%M:%SZ}"
        )
        kept.now = end - days(5)
        assert await kept.requests() == 0

        kept.now = end
        waiting = (await kept.ensure()).waiting
        assert waiting is not None
        assert f"Secret {kept.name}-ca cannot be used: its certificate has expired" in (
            waiting.message
        )

    run(test)


def test_a_new_endpoint_makes_a_new_kubeconfig(run: Run) -> None:
    """Proves: SEC-01."""

    async def test(kept: Keeping) -> None:
        await kept.ensure()
        kept.endpoint = Endpoint("api.test", 443)

        await kept.ensure()

        assert kept.access().server == "https://api.test:443"

    run(test)


def test_a_new_authority_makes_a_new_kubeconfig(run: Run) -> None:
    """Proves: SEC-01."""

    async def test(kept: Keeping) -> None:
        await kept.ensure()
        other = new_authority("kubernetes", NOW)
        kept.woken.clear()
        kept.api.delete(kept.get("ca"))
        kept.bring("ca", TLS, tls(other))
        await kept.watched("ca")
        assert kept.woken

        await kept.ensure(generate=False)

        assert kept.access().authority == other.certificate
        assert is_signed_by(kept.access().certificate, other.certificate)

    run(test)


def test_a_kubeconfig_that_is_deleted_comes_back(run: Run) -> None:
    """Proves: SEC-01."""

    async def test(kept: Keeping) -> None:
        await kept.ensure()
        authority = kept.data("ca", "tls.crt")
        kept.woken.clear()

        kept.api.delete(kept.get("kubeconfig"))
        await kept.watched("kubeconfig")
        assert kept.woken == [(NAMESPACE, kept.name)]
        await kept.ensure(generate=False)

        assert kept.access().authority == authority

    run(test)


def test_a_kubeconfig_that_is_broken_is_made_anew(run: Run) -> None:
    async def test(kept: Keeping) -> None:
        await kept.ensure()
        kept.api.patch(kept.get("kubeconfig"), {"data": {"value": "bm9uc2Vuc2U="}})
        await kept.watched("kubeconfig")

        await kept.ensure()

        assert kept.access().server == "https://10.0.0.1:6443"

    run(test)


def test_keys_that_were_used_are_never_made_anew(run: Run) -> None:
    """Proves: SEC-03."""

    async def test(kept: Keeping) -> None:
        await kept.ensure()
        for suffix in ("ca", "sa"):
            kept.api.delete(kept.get(suffix))
            await kept.watched(suffix)

        waiting = (await kept.ensure(generate=False)).waiting

        assert waiting is not None
        assert waiting.reason == "CertificatesNotUsable"
        assert waiting.message == (
            f"Secret {kept.name}-ca is missing and has to be restored; "
            f"Secret {kept.name}-sa is missing and has to be restored"
        )
        assert kept.find("ca") is None

    run(test)


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
        ({"tls.crt": new_authority("a", NOW).certificate}, "it has no tls.key"),
        ({}, "there is no certificate as PEM"),
        (
            {
                "tls.crt": new_authority("a", NOW).certificate,
                "tls.key": new_authority("b", NOW).key,
            },
            "the key is not that of the certificate",
        ),
    ],
    ids=["no key", "nothing", "two halves"],
)
def test_what_users_bring_incomplete_is_told(
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


def test_secrets_without_the_label_are_told(run: Run) -> None:
    """Proves: SEC-03."""

    async def test(kept: Keeping) -> None:
        pair = new_authority("own", NOW)
        kept.bring("ca", TLS, tls(pair), label=False)

        waiting = (await kept.ensure()).waiting

        assert waiting is not None
        assert f"it has no label {LABEL}={kept.name}" in waiting.message
        assert kept.data("ca", "tls.crt") == pair.certificate

    run(test)


def test_who_keeps_etcd_elsewhere_need_not_bring_its_key(run: Run) -> None:
    """Proves: SEC-03."""

    async def test(kept: Keeping) -> None:
        pair = new_authority("etcd", NOW)
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
        pair = new_authority("other", NOW)
        client = sign_client(pair, "me", [], NOW)
        access = kubeconfig.Access(
            server="https://other.test",
            authority=pair.certificate,
            certificate=client.certificate,
            key=client.key,
        )
        kept.bring("kubeconfig", "Opaque", {"value": kubeconfig.written("c", access)})
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


def test_after_a_move_everything_is_found_again(run: Run) -> None:
    """Proves: SEC-05, SM-07, MV-08."""

    async def test(kept: Keeping) -> None:
        await kept.ensure()
        before = {suffix: kept.get(suffix)["data"] for suffix in SUFFIXES}
        kept.uid = "uid-in-another-management-cluster"

        assert (await kept.ensure()).waiting is None

        for suffix in SUFFIXES:
            secret = kept.get(suffix)
            (owner,) = secret["metadata"]["ownerReferences"]
            assert owner["uid"] == kept.uid
            assert secret["data"] == before[suffix]
        assert await kept.requests() == 0

    run(test)


def test_ours_get_back_what_they_lack(run: Run) -> None:
    """Proves: SEC-01, SEC-03."""

    async def test(kept: Keeping) -> None:
        await kept.ensure()
        others = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "y"}
        for suffix in ("ca", "kubeconfig"):
            metadata = {"labels": {LABEL: None, "own": "1"}, "ownerReferences": [others]}
            kept.api.patch(kept.get(suffix), {"metadata": metadata})
            await kept.watched(suffix)

        await kept.ensure()

        for suffix in ("ca", "kubeconfig"):
            metadata = kept.get(suffix)["metadata"]
            assert metadata["labels"] == {LABEL: kept.name, "own": "1"}
            assert [each["name"] for each in metadata["ownerReferences"]] == [
                "x",
                f"{kept.name}-cp",
            ]

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


def test_no_private_key_is_kept_in_memory(run: Run) -> None:
    async def test(kept: Keeping) -> None:
        await kept.ensure()
        for suffix in SUFFIXES:
            await kept.watched(suffix)

        kept.api.patch(kept.get("ca"), {"metadata": {"annotations": {"a": "b"}}})
        await kept.watched("ca")
        cached = kept.store.informer.items()

        assert len(cached) >= len(SUFFIXES)
        assert all("data" not in each for each in cached)

    run(test)
